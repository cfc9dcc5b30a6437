// Rewrites the tables of settings, commands and metrics in docs/ from the code: the text between
// `<!-- table: NAME -->` and `<!-- end of table -->`.
import { loadCommands } from '../src/cli/groups.ts'
import { settings } from '../src/config.ts'
import { describeMetrics } from './interface.ts'

type Table = { heading: string[]; rows: string[][] }

export const documents = ['docs/commands.md', 'docs/observability.md', 'docs/settings.md']

async function loadTables(): Promise<Record<string, Table>> {
  return {
    settings: { heading: ['Name', 'Type', 'Default', 'Meaning'], rows: settingRows() },
    commands: { heading: ['Command', 'Description'], rows: await commandRows() },
    metrics: { heading: ['Metric', 'Meaning'], rows: metricRows() },
  }
}

const settingRows = () =>
  Object.entries(settings).map(([name, { type, fallback, secret, meaning }]) => [
    secret ? `\`${name}\` or \`${name}_FILE\`` : `\`${name}\``,
    type,
    fallback === undefined ? '' : `\`${fallback}\``,
    meaning,
  ])

const commandRows = async () =>
  (await loadCommands()).map(({ usage, description }) => [
    `\`${usage.replaceAll('|', '\\|')}\``,
    description.replaceAll(/--[a-z-]+/g, '`$&`'),
  ])

function metricRows() {
  const shown = [...describeMetrics().matchAll(/^# HELP (prompt_signals_\S+) (.+)$/gm)]
  return [
    ...shown.map(([, name, help = '']) => [`\`${name}\``, help]),
    ['`process_*`, `nodejs_*`', 'Memory, processor time, open files and event loop of the process'],
  ]
}

const writeRow = (cells: string[]) => `| ${cells.join(' | ')} |\n`

/** The document with each of its marked tables as the code has it. */
export async function fillTables(text: string): Promise<string> {
  const tables = await loadTables()
  return text.replaceAll(/(<!-- table: (\w+) -->\n)[\s\S]*?(<!-- end of table -->)/g, (_, start, name, end) => {
    const { heading, rows } = tables[name] as Table
    return `${start}${writeRow(heading)}|${'---|'.repeat(heading.length)}\n${rows.map(writeRow).join('')}${end}`
  })
}

if (import.meta.main) {
  for (const document of documents) {
    const text = await Bun.file(document).text()
    const filled = await fillTables(text)
    if (filled !== text) await Bun.write(document, filled)
  }
}
