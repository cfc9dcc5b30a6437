// The types of the interface, from its OpenAPI document: `bun scripts/api_types.ts` writes openapi.d.ts.
import type { components, operations } from './openapi.d.ts'

type Schemas = components['schemas']

/** The answer to a recorded signal; `Signal` is one that is read back. */
export type RecordedSignal = Schemas['Signal']
export type Signal = Schemas['RecordedSignal']
export type ExportedSignal = Signal & { prompt: string }
export type BatchResult = Schemas['BatchResult']
export type HistoryEntry = Schemas['HistoryEntry']
export type ImpactPage = Schemas['ImpactPage']
export type SignalStats = Schemas['SignalStats']
export type Usage = Schemas['UsageData']
export type Prompt = Schemas['Prompt']
export type NewPrompt = Schemas['NewPrompt']
export type PromptChange = Schemas['PromptChange']
export type ApiKey = Schemas['ApiKey']
export type CreatedApiKey = Schemas['CreatedApiKey']['data']
export type NewApiKey = Schemas['NewApiKey']
export type ApiKeyChange = Schemas['ApiKeyChange']
export type KeyRotation = Schemas['KeyRotation']

/** The parameters of an operation's query. */
export type Query<Name extends keyof operations> = NonNullable<operations[Name]['parameters']['query']>

/** Only signals with this value in a top-level field of their metadata. */
export type MetadataFilters = { [field: `metadata.${string}`]: string }
