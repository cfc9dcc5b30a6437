import { href } from '../client/router.ts'
import { Page } from '../parts/page.tsx'

export const PageNotFound = () => (
  <Page title="Page not found">
    <WayBack />
  </Page>
)

export const PromptNotFound = () => (
  <Page title="Prompt not found">
    <p>It does not exist, or belongs to another organisation.</p>
    <WayBack />
  </Page>
)

const WayBack = () => (
  <p>
    <a href={href('/')}>Go to the prompts</a>
  </p>
)
