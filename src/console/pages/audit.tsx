import { get } from '../client/api.ts'
import { List } from '../parts/list.tsx'
import { Page } from '../parts/page.tsx'
import { Note } from '../parts/states.tsx'
import { Id, Moment, Named, Text } from '../parts/text.tsx'
import { Tree } from '../parts/tree.tsx'

/** Who changed what, newest first. */
export const Audit = () => (
  <Page title="Audit log">
    <List
      caption="Audit log"
      pageAt={(cursor) => get('/api/v1/audit', { query: { cursor } })}
      empty={() => <Note title="No changes yet" />}
      keyOf={({ id }) => id}
      columns={[
        { name: 'When', cell: ({ created_at }) => <Moment time={created_at} /> },
        { name: 'Actor', cell: ({ actor, actor_name: name }) => <Who id={actor} name={name} /> },
        { name: 'Action', cell: ({ action }) => action },
        { name: 'Target', cell: ({ subject, subject_name: name }) => <Who id={subject} name={name} /> },
        { name: 'Details', cell: ({ details }) => <Tree isRoot name="details" value={details} /> },
      ]}
    />
  </Page>
)

/** By name where there is one, else by id. */
const Who = ({ id, name }: { id: string; name: string | null }) =>
  name === null ? <Id>{id}</Id> : <Named name={<Text>{name}</Text>} detail={<Id>{id}</Id>} />
