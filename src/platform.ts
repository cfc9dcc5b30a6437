// The runtime that the program is on. On Deno, `deno.json` puts the other file of that folder in the place of this one.
export * from './platform/bun.ts'
