import { href } from '../client/root.ts'
import { Page } from '../parts/page.tsx'

export const Nothing = () => (
  <Page title="There is no such page">
    <p>
      <a href={href('/')}>Go to the prompts</a>
    </p>
  </Page>
)
