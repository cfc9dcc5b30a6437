import { type Static, type TSchema, Type } from '@sinclair/typebox'

export const nullable = <S extends TSchema>(schema: S, description: string) =>
  Type.Union([schema, Type.Null()], { description })

export const literals = <const Text extends string>(texts: readonly Text[], options: { description?: string } = {}) =>
  Type.Union(
    texts.map((text) => Type.Literal(text)),
    options,
  )

export const envelopeOf = <S extends TSchema>(data: S, title: string, example: object) =>
  Type.Object({ data }, { title, examples: [{ data: example }] })

/** The type of a schema, with its times (`…_at`) as dates. */
export type Row<S extends TSchema> = {
  [Name in keyof Static<S>]: Name extends `${string}_at` ? Date | Extract<Static<S>[Name], null> : Static<S>[Name]
}

/** Text that Postgres can store, without control characters. */
export const printable = (maxLength: number) =>
  Type.String({
    minLength: 1,
    maxLength,
    pattern: '^(?:[^\\u0000-\\u001f\\u007f-\\u009f\\ud800-\\udfff]|[\\ud800-\\udbff][\\udc00-\\udfff])*$',
  })
