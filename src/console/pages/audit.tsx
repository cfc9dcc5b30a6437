import { answerOf, api } from '../client/api.ts'
import { useQuery } from '../client/query.ts'
import { usePlace } from '../client/router.ts'
import type { Schemas } from '../client/schemas.ts'
import { formatMoment } from '../parts/format.ts'
import { Page } from '../parts/page.tsx'
import { Pager } from '../parts/pager.tsx'
import { Await, Empty } from '../parts/states.tsx'
import { Table } from '../parts/table.tsx'
import { Code } from '../parts/text.tsx'
import { Tree } from '../parts/tree.tsx'

const asking = (cursor: string | undefined): [string, () => Promise<Schemas['AuditEntryList']>] => [
  `audit ${cursor ?? ''}`,
  () => answerOf(api.GET('/api/v1/audit', { params: { query: cursor ? { cursor } : {} } })),
]

/** Who changed what, newest first. */
export function Audit() {
  const cursor = usePlace().query.get('cursor') ?? undefined
  const query = useQuery(...asking(cursor))
  return (
    <Page title="Audit log">
      <Await query={query}>
        {({ data, pagination }) => (
          <>
            {data.length === 0 ? (
              <Empty title="Nothing was changed yet" />
            ) : (
              <Table
                caption="Audit log"
                rows={data}
                keyOf={({ id }) => id}
                columns={[
                  { name: 'When', cell: ({ created_at: time }) => <time dateTime={time}>{formatMoment(time)}</time> },
                  { name: 'Who', cell: ({ actor }) => <Code>{actor}</Code> },
                  { name: 'Did', cell: ({ action }) => action },
                  { name: 'What', cell: ({ subject }) => <Code>{subject}</Code> },
                  { name: 'Details', cell: ({ details }) => <Tree isRoot name="details" value={details} /> },
                ]}
              />
            )}
            <Pager isFirst={cursor === undefined} next={pagination.next_cursor} ask={asking} />
          </>
        )}
      </Await>
    </Page>
  )
}
