// Replays transcripts/*.txt: lines of a shell after "$ ", what they print to standard output and then to standard error,
// and the exit status unless it is 0. WRITE_TRANSCRIPTS=yes writes what they print into the files.
import { afterAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { keepSecrets } from '../binary.ts'
import { createFolder, PROGRAM } from '../program.ts'
import { useProgram } from '../use.ts'

const folder = join(import.meta.dir, 'transcripts')

/**
 * `remote` works with the service, without a database, by the first key that the transcript shows. `entry` prints a line
 * of a history with this commit, and with more or other fields.
 */
const prelude = `remote() {
  env -u DATABASE_URL DATA_DIR=/proc/none PROMPT_SIGNALS_KEY=$psk1 prompt-signals "$@" --url $url
}
entry() {
  echo '{"prompt":"pmt_greeting","action":"deployed","user":{"name":"Ada","email":"ada@example.com"},"branch_name":"main",' \
    '"created_at":"2020-10-01T09:00:00Z","commit_sha":"'$1'"'\${2:+,$2}'}'
}
`

/** What differs each time: the first organisation is shown as <org1>, and commands have its id in $org1. */
const holes = {
  psk: /psk_[0-9A-Za-z]{36}/g,
  prefix: /psk_[0-9A-Za-z]{8}\b/g,
  org: /org_[0-9A-Za-z]{16}\b/g,
  key: /key_[0-9A-Za-z]{16}\b/g,
  pmt: /pmt_[0-9A-Za-z]{16}\b/g,
  whe: /whe_[0-9A-Za-z]{16}\b/g,
  secret: /whsec_[\w+/]{43}=|\b[0-9A-Za-z]{43}\b/g,
  cursor: /\bWyJ[\w-]+/g,
}

/** Times of the current day or a day around it, and the end of the month. Others are given by the transcript. */
function hideTime(time: string): string {
  const now = new Date()
  const [day, isDay] = [Date.parse(time.slice(0, 10)), time.length === 10]
  if (day === Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1)) return '<reset>'
  return Math.abs(day - now.getTime()) > 2 * 86_400_000 ? time : isDay ? '<day>' : '<time>'
}

describe.each(readdirSync(folder))('%s', (name) => {
  const file = join(folder, name)
  const [, ...sections] = readFileSync(file, 'utf8').split(/^# /m)
  const written: string[] = []
  afterAll(() => {
    // Not if only some of its tests ran.
    if (process.env.WRITE_TRANSCRIPTS && written.length === sections.length) {
      writeFileSync(file, `# ${written.join('# ')}`)
    }
  })
  const { server, settings } = useProgram()
  const cwd = createFolder()
  const values: Record<string, string> = {}

  function hide(text: string): string {
    let hidden = text.replaceAll(server.url, '<url>')
    for (const [kind, pattern] of Object.entries(holes)) {
      hidden = hidden.replaceAll(pattern, (value) => {
        const known = Object.keys(values).filter((name) => name.replace(/\d+$/, '') === kind)
        const name = known.find((one) => values[one] === value) ?? `${kind}${known.length + 1}`
        values[name] = value
        return `<${name}>`
      })
    }
    return hidden.replaceAll(/\d{4}-\d\d-\d\d(T[\d:.]{12}Z| \d\d:\d\d)?/g, hideTime)
  }

  async function replay(command: string): Promise<string> {
    const shell = Bun.spawn(['bash', '-c', prelude + command], {
      cwd,
      env: {
        LC_ALL: 'C.UTF-8',
        PATH: [dirname(PROGRAM), process.env.PATH].join(delimiter),
        PORT: new URL(server.url).port,
        ...settings,
        url: server.url,
        ...values,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const [stdout, stderr, status] = await Promise.all([shell.stdout.text(), shell.stderr.text(), shell.exited])
    keepSecrets({}, stdout)
    return hide(`${stdout}${stderr}`) + (status === 0 ? '' : `[${status}]\n`)
  }

  test.each(sections.map((section) => [section.slice(0, section.indexOf('\n')), section]))('%s', async (_, section) => {
    const [heading = '', ...steps] = section.split(/^\$ /m)
    let shown = heading
    for (const step of steps) {
      const [, command = ''] = /^(.*(?:\n> .*)*)/.exec(step) as RegExpExecArray
      shown += `$ ${command}\n${await replay(command.replaceAll('\n> ', '\n'))}`
      if (step.endsWith('\n\n')) shown += '\n'
    }
    written.push(shown)
    if (!process.env.WRITE_TRANSCRIPTS) expect(shown).toBe(section)
  })
})
