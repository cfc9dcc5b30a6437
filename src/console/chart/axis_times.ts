const hour = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' })
const day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' })
const month = new Intl.DateTimeFormat(undefined, { month: 'short', year: 'numeric' })

const daySeconds = 86_400

/** The words below the axis of time, in the reader's own. The step between them says how exact they must be. */
export const axisTimes = (seconds: number[], step: number): string[] =>
  seconds.map((one) => {
    const time = new Date(one * 1_000)
    if (step >= 28 * daySeconds) return month.format(time)
    const isMidnight = time.getHours() === 0 && time.getMinutes() === 0
    return step >= daySeconds || isMidnight ? day.format(time) : hour.format(time)
  })
