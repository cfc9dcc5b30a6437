import { Elysia } from 'elysia'
import type { KeyVerifier } from '../keys/verify.ts'
import { createDeadline } from './deadline.ts'
import { notesOf } from './notes.ts'

/** Runs before a route looks at anything else of the request: no key, no answer. */
export const authenticated = (verifyKey: KeyVerifier) =>
  new Elysia({ name: 'authenticated' }).derive({ as: 'scoped' }, async ({ request }) => {
    const inTime = createDeadline()
    const caller = await inTime(verifyKey(request.headers.get('authorization')))
    notesOf(request).caller = caller
    return { inTime, caller }
  })
