import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import { type Answer, dataOf, readRows } from '../lib/rest.ts'
import { checkService, type Operations, withApi } from './api.ts'
import { type Arguments, type Command, type Context, splitPair, UsageError } from './command.ts'
import { type Option, optionFor } from './grammar.ts'
import type { AnyColumn } from './output.ts'

// biome-ignore lint/suspicious/noExplicitAny: an answer, whose fields the columns of a command name.
type Json = any

type OperationCommand = Pick<Command, 'usage' | 'description' | 'check'> & {
  /** The operation that it calls. Its options and arguments are the fields of the operation. */
  operation: string
  /** What is sent unless an option says otherwise. */
  defaults?: Record<string, unknown>
  /** How people see a list. */
  columns?: AnyColumn<Json>[]
  /** Whether every page is shown, the oldest row first. */
  showsAll?: true
  /** How people see the answer otherwise; one line per field by default. */
  show?(context: Context, body: Json): void
  /** Whether programs get the whole answer, not only its data. */
  showsBody?: true
  /** What people must know of the result. */
  note?: string
  /** Throws if the result is a failure. */
  judge?(args: Arguments, data: Json): void
}

export const fromOperations = (known: Operations, commands: OperationCommand[]): Command[] =>
  commands.map((command) => fromOperation(known, command))

function fromOperation(
  known: Operations,
  { usage, description, check, operation, defaults = {}, ...shown }: OperationCommand,
): Command {
  const { method, path, query, body } = known.find(({ id }) => id === operation) as Operations[number]
  // An endpoint has a URL, too: such a command works only on the database.
  const isLocal = 'url' in (body?.schema.properties ?? {})
  const searchOf = (args: Arguments) => toSearch(args, query?.schema, defaults)
  const fieldsOf = (args: Arguments) => body && { ...defaults, ...toFields(args, body.schema) }
  return {
    usage,
    description,
    check(args) {
      check?.(args)
      if (!isLocal) checkService(args)
      for (const name of ['page', 'limit']) args.integer(name, 1)
      const [search, fields] = [searchOf(args), fieldsOf(args)]
      if (method === 'PATCH' && Object.keys(fields ?? {}).length === 0) {
        throw new UsageError('nothing to change is given')
      }
      args.naming(() => [query?.parse(search), body?.parse(fields)])
    },
    run: (context) =>
      withApi(
        context,
        method === 'GET' ? 'reader' : 'admin',
        async (opened, call) => {
          const { args } = opened
          const [place, search] = [fillPath(args, path), searchOf(args)]
          if (!shown.showsAll)
            return showAnswer(opened, shown, await call(method, `${place}?${search}`, fieldsOf(args)))
          const rows = await Array.fromAsync(readRows<Json>(call, place, Object.fromEntries(search)))
          opened.output.table(rows.reverse(), shown.columns ?? [])
        },
        { known, ...(isLocal && { url: null }) },
      ),
  }
}

type Shown = Omit<OperationCommand, 'usage' | 'description' | 'check' | 'operation' | 'defaults'>

function showAnswer(context: Context, { columns = [], show, showsBody, note, judge }: Shown, answer: Answer): void {
  const { args, output } = context
  const data = dataOf<Json>(answer)
  const cursor = answer.body.pagination?.next_cursor
  if (show && !args.options.json) show(context, answer.body)
  else if (showsBody) output.show(answer.body as Json)
  else if (Array.isArray(data)) output.table(data, columns)
  else output.show(data)
  if (cursor) output.say(`There are older ones: --cursor ${cursor}`)
  if (note) output.say(note)
  judge?.(args, data)
}

/** A prompt may be an option; ID names what no other argument does. */
const fillPath = (args: Arguments, path: string): string =>
  path.replace(/:(\w+)_id/g, (_, noun: string) =>
    encodeURIComponent(args.place(noun.toUpperCase()) ?? args.text(noun) ?? args.place('ID') ?? ''),
  )

function toSearch(args: Arguments, schema: TObject = Type.Object({}), defaults: object): URLSearchParams {
  const search = new URLSearchParams()
  for (const name of Object.keys(schema.properties)) {
    const value = args.text(name) ?? (defaults as Record<string, string>)[name]
    if (value !== undefined) search.set(name, value)
  }
  for (const filter of args.list('metadata') ?? []) {
    const [field, text] = splitPair('metadata', filter, 'FIELD=TEXT', 0)
    search.append(`metadata.${field}`, text)
  }
  return search
}

/** The options and arguments as the fields of a body: --user-name is user.name, --origin is one of origins. */
function toFields(args: Arguments, { properties }: TObject, prefix = ''): Record<string, unknown> {
  const fields = Object.entries<TSchema>(properties).map(([name, schema]) => {
    if (schema.type === 'object') {
      const inner = toFields(args, schema as TObject, `${prefix}${name}-`)
      return [name, Object.keys(inner).length > 0 ? inner : undefined]
    }
    const place = args.place(name.toUpperCase())
    if (place !== null) return [name, place]
    const option = optionFor(args.grammar, prefix + name)
    return [name, option && toValue(args, option, schema, name.endsWith('_seconds'))]
  })
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined))
}

function toValue(args: Arguments, option: Option, schema: TSchema, isDuration: boolean): unknown {
  const given = args.options[option.name]
  const [inner, nothing] = (schema.anyOf ?? []) as TSchema[]
  if (inner && nothing?.type === 'null') {
    // The usage line names the word for nothing: TIME|none, or B|"".
    const [, ...words] = option.value?.replace('""', '').split('|') ?? []
    return words.includes(String(given)) ? null : toValue(args, option, inner, isDuration)
  }
  if (typeof given !== 'string') return given
  if (isDuration) return toSeconds(option.name, given, schema.maximum)
  if (schema.type === 'array') return given.split(',').map((one) => one.trim())
  if (schema.type === 'integer') return args.integer(option.name, schema.minimum ?? 0)
  return schema.type === 'boolean' ? given === 'true' : given
}

const unitSeconds = { s: 1, m: 60, h: 3_600, d: 86_400 }

function toSeconds(option: string, given: string, maximum: number): number {
  const [, count, unit = 'd'] = /^(\d{1,8})([smhd])$/.exec(given) ?? []
  const seconds = Number(count) * unitSeconds[unit as keyof typeof unitSeconds]
  if (seconds <= maximum) return seconds
  const most = `${maximum / unitSeconds.d}d`
  throw new UsageError(`--${option} must be such as 90s, 30m, 24h or 7d, and at most ${most}, not "${given}"`)
}
