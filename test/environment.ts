/** The product's settings; in a test they come from the test alone. */
const SETTINGS = ['DATABASE_URL', 'REDIS_URL', 'PORT', 'HOST', 'DATA_DIR', 'LOG_LEVEL']

/** The developer's environment without what would change how the product behaves. */
export function cleanEnvironment(): Record<string, string | undefined> {
  const dropped = new Set(SETTINGS.flatMap((name) => [name, `${name}_FILE`]))
  const kept = Object.entries(process.env).filter(([name]) => !dropped.has(name))
  // Elysia answers differently in development, and users run production.
  return { ...Object.fromEntries(kept), NODE_ENV: 'production' }
}
