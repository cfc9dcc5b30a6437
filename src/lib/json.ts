/** Keeps numbers as they are written that a double would round: metadata may hold ids of 64 bits. */
export const keepLongNumbers = (_: string, value: unknown, { source = '' }: { source?: string } = {}): unknown =>
  typeof value === 'number' && /\d{16}/.test(source.replace('.', '')) && String(value) !== source
    ? JSON.rawJSON(source)
    : value
