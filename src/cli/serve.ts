import { createApp } from '../app.ts'
import type { Config } from '../config.ts'
import { openServices } from '../deps.ts'
import { crashResponse } from '../http/envelope.ts'
import { createLog } from '../log.ts'
import { type Listener, listen } from '../platform.ts'
import type { Command } from './command.ts'
import { offerDemo } from './demo.ts'

const signals = ['SIGTERM', 'SIGINT'] as const
/** For the requests under way to end in, before the process ends without them. */
const stopMs = 15_000

export const serveCommand: Command = {
  usage: 'serve [--host H] [--port P] [--demo]',
  does: 'runs the service; --demo fills an empty embedded database to try it on',
  values: ['host', 'port'],
  flags: ['demo'],
  async run({ config, clock, typed, output }) {
    const log = createLog(config.LOG_LEVEL)
    // From the beginning: whoever is told to stop while it starts must also leave the database in order.
    const stopped = nextSignal()
    const services = await openServices(config, clock, log, (error) => {
      log.fatal({ err: error }, 'the embedded database has failed; restart to recover')
      process.exit(1)
    })
    try {
      const listener = startListening(createApp(services).fetch, config)
      log.info({ url: listener.url, database: config.DATABASE_URL ? 'postgres' : 'embedded' }, 'serving')
      if (typed.options.demo) await offerDemo({ db: services.db, config, clock, output, url: listener.url })
      log.info({ signal: await stopped }, 'stopping')
      for (const signal of signals) process.once(signal, () => process.exit(1))
      setTimeout(() => process.exit(1), stopMs).unref()
      await listener.stop()
    } finally {
      await services.close()
    }
    log.info('stopped')
  },
}

function startListening(handle: (request: Request) => Response | Promise<Response>, { HOST, PORT }: Config): Listener {
  try {
    return listen(handle, crashResponse, HOST, PORT)
  } catch (error) {
    throw new Error(`Cannot listen on ${HOST} port ${PORT}: ${(error as Error).message}`)
  }
}

const nextSignal = () =>
  new Promise<string>((resolve) => {
    for (const signal of signals) process.once(signal, () => resolve(signal))
  })
