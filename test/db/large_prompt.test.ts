// Statements compare the organisation as well as the prompt. Postgres must not expect fewer rows for it: it would read all
// rows of a prompt and sort them, where an index has their order.
import { expect, test } from 'bun:test'
import { useOwnService } from '../use.ts'

const service = useOwnService()
const [organisations, rowsOfEach] = [100, 20]

const tables = {
  signals: `(organisation_id, prompt_id, value, created_at) select p, p, 'positive', now()`,
  signal_counts: `(organisation_id, prompt_id, minutes, start, positive, negative)
    select p, p, 15, now() + n * interval '15 minutes', 1, 1`,
  signal_commit_counts: `(organisation_id, prompt_id, commit_sha, minutes, start, positive, negative)
    select p, p, n, 15, now(), 1, 1`,
  history_entries: `(organisation_id, prompt_id, action, user_name, user_email, commit_sha, branch_name, created_at)
    select p, p, 'deployed', 'Ada', 'ada@example.com', n, 'main', now()`,
}

test.each(Object.entries(tables))('the rows of a prompt in %s are estimated well', async (table, values) => {
  const { sql } = service.services.db
  await sql.script(`
    insert into ${table} ${values}
    from generate_series(1, ${organisations}) p, generate_series(1, ${rowsOfEach}) n;
    analyze ${table}`)
  const [row] = await sql.dynamic<{ 'QUERY PLAN': { Plan: { 'Plan Rows': number } }[] }>(
    `explain (format json) select from ${table} where organisation_id = 7 and prompt_id = 7`,
  )
  expect(row?.['QUERY PLAN'][0]?.Plan['Plan Rows']).toBe(rowsOfEach)
})
