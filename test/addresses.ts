// Addresses for callers who differ in nothing else. The service must trust the test as its proxy.
let made = 0

export const trustTheTest = { TRUSTED_PROXIES: '127.0.0.1' }

/** An address that no other caller has, in a network that is kept for tests. */
export function newAddress(): string {
  made += 1
  return `198.18.${(made >> 8) & 255}.${made & 255}`
}

/** The headers by which a proxy says where a request comes from. */
export const comingFrom = (address: string) => ({ 'x-forwarded-for': address })
