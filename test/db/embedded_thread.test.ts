import { expect, test } from 'bun:test'
import { startEngineThread } from '../../src/db/embedded.ts'
import { Backend, Session } from '../../src/db/embedded_session.ts'
import { rejectionOf } from '../program.ts'

test('an engine that throws is given up: its sessions end, and the failure is reported', async () => {
  const reported: string[] = []
  const broken = () => Promise.reject(new Error('unreachable'))
  const backend = new Backend(broken, ({ message }) => reported.push(message))
  const sessions = [1, 2].map(() => new Session(backend).on('error', () => {}))
  const answers = sessions.map((session) => backend.run(session, [Buffer.from('Q')]).catch(({ message }) => message))
  const failure = 'the embedded database has stopped: unreachable'
  expect(await Promise.all(answers)).toEqual([failure, failure])
  expect([reported, backend.failed]).toEqual([[failure], true])
})

/** A thread in the place of the engine's, which opens and then does as the code says. */
function startThread(code: string) {
  const source = `onmessage = ({ data }) => { if (data.open) postMessage({ bytes: new Uint8Array() }); else { ${code} } }`
  return startEngineThread('nowhere', new Worker(URL.createObjectURL(new Blob([source]))))
}

test.each([
  ['ends', 'process.exit(3)', 'its thread has ended'],
  ['fails', 'throw new Error("out of memory")', 'out of memory'],
] as const)(
  'a thread that %s is given up: its pending requests are rejected, and the failure is reported',
  async (_, code, reason) => {
    const thread = await startThread(code)
    expect(await rejectionOf(thread.execute(new Uint8Array()))).toContain(reason)
    expect(await thread.died).toContain(reason)
    expect(await rejectionOf(thread.execute(new Uint8Array()))).toContain(reason)
  },
)
