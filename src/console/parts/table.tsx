// biome-ignore-all lint/a11y/noRedundantRoles: styled as a list, a table would no longer be one without them
import type { ComponentChildren } from 'preact'
import { Button } from './button.tsx'

export type Column<Row> = {
  name: string
  cell(row: Row): ComponentChildren
  /** Figures are aligned by their digits. */
  isFigure?: boolean
  /** Sentences, which have room. */
  isText?: boolean
  /** The name is only for screen readers. */
  isQuiet?: boolean
}

export type TableProps<Row> = {
  caption: string
  /** A column that is false is left out. */
  columns: (Column<NoInfer<Row>> | false)[]
  rows: Row[]
  keyOf(row: Row): string | number
  /** Rows have two lines, and what is longer is cut. */
  hasLines?: boolean
  /** The anchor of a row, where something leads to it. */
  idOf?(row: Row): string
}

/** A table, which becomes a list of cards on narrow screens. The roles keep it a table for screen readers. */
export function Table<Row>({ caption, columns, rows, keyOf, hasLines, idOf }: TableProps<Row>) {
  const shown = columns.filter((column) => column !== false)
  return (
    <table class={`list ${hasLines ? 'lines' : ''}`} role="table">
      <caption class="visually-hidden">{caption}</caption>
      <thead role="rowgroup">
        <tr role="row">
          {shown.map(({ name, isFigure, isQuiet }) => (
            <th key={name} role="columnheader" scope="col" class={isFigure ? 'figure' : ''}>
              <span class={isQuiet ? 'visually-hidden' : ''}>{name}</span>
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {rows.map((row) => (
          <tr key={keyOf(row)} id={idOf?.(row)} role="row">
            {shown.map(({ name, cell, isFigure, isText, isQuiet }) => (
              <td
                key={name}
                role="cell"
                class={isFigure ? 'figure' : isText ? 'prose' : ''}
                data-name={isQuiet ? undefined : name}
              >
                <div>{cell(row)}</div>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** A column of buttons. `actionsOf` has the words on each, and what it does to the row that `nameOf` names. */
export const actionsColumn = <Row,>(
  nameOf: (row: Row) => string,
  actionsOf: (row: Row) => Record<string, () => void>,
): Column<Row> => ({
  name: 'Actions',
  isQuiet: true,
  cell(row) {
    const actions = Object.entries(actionsOf(row)).map(([does, onClick]) => (
      <Button key={does} look="small" does={does} to={nameOf(row)} onClick={onClick} />
    ))
    return actions.length > 0 && <span class="row-actions">{actions}</span>
  },
})

/** The same below a chart, folded. */
export const FoldedTable = <Row,>(table: TableProps<Row>) => (
  <details class="fold">
    <summary class="fine">View as table</summary>
    <Table {...table} />
  </details>
)
