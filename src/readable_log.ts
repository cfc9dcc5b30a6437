type Line = { level: number; time: string; msg?: string; [field: string]: unknown }

const levels: Record<number, string> = { 10: 'TRACE', 20: 'DEBUG', 30: 'INFO', 40: 'WARN', 50: 'ERROR', 60: 'FATAL' }

/** Shortens a line of the log for a person at a terminal, without control characters that could steer it. */
export function readableLine(json: string): string {
  const { level, time, msg = '', ...fields } = JSON.parse(json) as Line
  const words = msg === 'request' ? requestWords(fields) : [msg, ...Object.entries(fields).map(fieldWord)]
  const text = [time.slice(11, 19), (levels[level] ?? '').padEnd(5), ...words].join(' ')
  return `${text.replace(/\p{Cc}+/gu, ' ').trimEnd()}\n`
}

const requestWords = ({ method, route, status, ms, org, key, request_id }: Record<string, unknown>) =>
  [method, route, status, `${ms} ms`, org, key, request_id].filter((word) => word !== undefined)

function fieldWord([name, value]: [string, unknown]): string {
  // The stack is left to the JSON log; at a terminal the message says enough.
  if (name === 'err') return `${name}=${(value as { message?: string }).message}`
  return `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`
}
