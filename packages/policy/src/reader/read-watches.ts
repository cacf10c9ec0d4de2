import { type Watch, watchedAlerts } from '../policy.ts'
import type { PolicyReader, SourcePosition } from './policy-reader.ts'
import * as t from './value-types.ts'

const minuteMs = 60_000
/** Each is asked of ClickHouse about every minute. */
const watchesMax = 20
/** ClickHouse is asked for twelve times as much as came before, of the minutes that it keeps. */
const windowMax = '60m'
const window = t.duration('1m', windowMax, {
  rule: 'a duration in whole minutes such as 5m or 1h',
  wholeMs: minuteMs,
  wholeWords: 'whole minutes, ',
})

const watch = t.object('a watch', {
  alert: t.required(
    'A sudden rise of denials or of accepted requests, or a sudden fall of accepted requests.',
    t.oneOf(watchedAlerts),
  ),
  per: t.withDefault(
    'Whether to watch each subject, each address, or all together.',
    t.oneOf(['subject', 'address', 'all']),
    'subject',
  ),
  window: t.withDefault('Length of the window, in whole minutes up to an hour. Default: 5m.', window, 5 * minuteMs),
  factor: t.withDefault('How many times more, or less, than usual.', t.integer(2, 1_000), 5),
  // A handful of requests means nothing.
  least: t.withDefault('The fewest requests that raise an alert.', t.integer(1, Number.MAX_SAFE_INTEGER), 100),
  cooldown: t.withDefault(
    'The least time before the alert is raised again: 1m to 7d. Default: 1h.',
    t.duration('1m', '7d', { rule: 'a duration such as 30m, 2h or 1d' }),
    60 * minuteMs,
  ),
})

/** The section `watches`. */
export const watchEntries = t.entries(watch.schema, { plural: 'watches', one: 'a watch', max: watchesMax })

/** What is watched for, by name. */
export const readWatches = (reader: PolicyReader, at: SourcePosition) =>
  watchEntries.each(reader, at, (name, field): Watch | undefined => {
    const found = watch.read(reader, field)
    if (found === undefined) return undefined
    const { window: windowMs, cooldown: cooldownMs, ...rest } = found
    return { name, ...rest, windowMs, cooldownMs }
  })
