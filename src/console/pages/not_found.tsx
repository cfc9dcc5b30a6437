import type { ComponentChildren } from 'preact'
import { href } from '../client/router.ts'
import { Page } from '../parts/page.tsx'

export const NotFound = ({ what, children }: { what: string; children?: ComponentChildren }) => (
  <Page title={`${what} not found`}>
    {children && <p>{children}</p>}
    <p>
      <a href={href('/prompts')}>Go to the prompts</a>
    </p>
  </Page>
)
