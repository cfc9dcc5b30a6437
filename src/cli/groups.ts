import type { Command } from './command.ts'

/** The files of commands by the first words of their names. They are loaded on demand, which keeps every command quick. */
const files: Record<string, () => Promise<{ commands: Command[] }>> = {
  'init console': () => import('./init.ts'),
  serve: () => import('./serve.ts'),
  orgs: () => import('./orgs.ts'),
  'keys endpoints webhooks audit': () => import('./administer.ts'),
  'prompts repositories': () => import('./prompts.ts'),
  history: () => import('./history.ts'),
  'signals usage': () => import('./signals.ts'),
  'impact compare': () => import('./impact.ts'),
  report: () => import('./report.ts'),
  sync: () => import('./sync.ts'),
  api: () => import('./call.ts'),
  'backup restore': () => import('./backup.ts'),
  'migrate healthcheck config version': () => import('./operate.ts'),
}

/** The commands whose names begin with this word. */
export async function loadGroup(first: string): Promise<Command[]> {
  const file = Object.keys(files).find((words) => words.split(' ').includes(first))
  const { commands = [] } = (file && (await files[file]?.())) || {}
  return commands.filter(({ usage }) => usage.split(' ')[0] === first)
}

export async function loadCommands(): Promise<Command[]> {
  const loaded = await Promise.all(Object.values(files).map((load) => load()))
  return loaded.flatMap(({ commands }) => commands)
}
