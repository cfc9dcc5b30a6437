import type { components } from '../../../generated/api.d.ts'

/** The types of the interface by their names in its document. */
export type Schemas = components['schemas']
export type OwnKey = Schemas['OwnApiKey']
export type Scope = OwnKey['scopes'][number]
