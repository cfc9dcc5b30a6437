export type * from './api.ts'
export { assign, type Experiment } from './assign.ts'
export { type BufferOptions, createSignalBuffer, type SignalBuffer } from './buffer.ts'
export { type Client, createClient } from './client.ts'
export {
  type CallOptions,
  type ClientOptions,
  createSignals,
  type NewSignal,
  PromptSignalsError,
  type SignalOptions,
  type Signals,
  type Value,
} from './signals.ts'
