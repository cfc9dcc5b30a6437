// The one file that knows Bun: serving, and the files that travel inside the binary.
// Everything else is web-standard or `node:`, so another runtime needs only another one of these.
import initdbWasmPath from '../node_modules/@electric-sql/pglite/dist/initdb.wasm' with { type: 'file' }
import fsBundlePath from '../node_modules/@electric-sql/pglite/dist/pglite.data' with { type: 'file' }
import pgliteWasmPath from '../node_modules/@electric-sql/pglite/dist/pglite.wasm' with { type: 'file' }
import seedPath from '../generated/seed.tar.gz' with { type: 'file' }

/** The embedded engine's own files, read only when that engine is opened. */
export const engineFiles = {
  pgliteWasm: async () => WebAssembly.compile(await Bun.file(pgliteWasmPath).arrayBuffer()),
  initdbWasm: async () => WebAssembly.compile(await Bun.file(initdbWasmPath).arrayBuffer()),
  fsBundle: () => Bun.file(fsBundlePath),
}

/** Unpacks the prepared data directory, so that a first start needs no initdb. */
export async function unpackSeed(directory: string): Promise<void> {
  await new Bun.Archive(await Bun.file(seedPath).arrayBuffer()).extract(directory)
}
