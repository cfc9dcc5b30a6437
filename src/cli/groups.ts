import type { Command } from './command.ts'

/** Commands by the first word of their names. Groups are loaded on demand, which keeps every command quick. */
export const groups = new Map<string, () => Promise<{ commands: Command[] }>>(
  Object.entries({
    init: () => import('./init.ts'),
    serve: () => import('./serve.ts'),
    orgs: () => import('./orgs.ts'),
    api: () => import('./call.ts'),
    keys: () => import('./administer.ts'),
    prompts: () => import('./prompts.ts'),
    history: () => import('./history.ts'),
    signals: () => import('./signals.ts'),
    usage: () => import('./signals.ts'),
    impact: () => import('./impact.ts'),
    compare: () => import('./impact.ts'),
    report: () => import('./report.ts'),
    sync: () => import('./sync.ts'),
    audit: () => import('./administer.ts'),
    webhooks: () => import('./administer.ts'),
    endpoints: () => import('./administer.ts'),
    console: () => import('./init.ts'),
    backup: () => import('./backup.ts'),
    restore: () => import('./backup.ts'),
    migrate: () => import('./operate.ts'),
    healthcheck: () => import('./operate.ts'),
    config: () => import('./operate.ts'),
    version: () => import('./operate.ts'),
  }),
)

export async function loadCommands(): Promise<Command[]> {
  const loaded = await Promise.all([...groups.values()].map((load) => load()))
  // Some files hold several groups.
  return [...new Set(loaded.flatMap(({ commands }) => commands))]
}
