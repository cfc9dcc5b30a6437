// The runtime in use. On Deno, `deno.json` replaces this file by `platform/deno.ts`.
export * from './platform/bun.ts'
