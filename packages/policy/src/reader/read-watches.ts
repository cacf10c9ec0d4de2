import { type Watch, watchedAlerts } from '../policy.ts'
import { nameRule, parseDurationMs, parseName } from '../policy-values.ts'
import type { Field, Place, PolicyReader } from './policy-reader.ts'

const minuteMs = 60_000
const keys = ['alert', 'per', 'window', 'factor', 'least', 'cooldown'] as const
/** Each is asked of ClickHouse about every minute. */
const watchesMax = 20
/** ClickHouse is asked for twelve times as much as came before, of the minutes that it keeps. */
const windowMsMax = 60 * minuteMs
const factorMax = 1_000
const cooldownMs = { min: minuteMs, max: 7 * 24 * 60 * minuteMs }
/** What a watch has that does not say otherwise. A handful of requests tells of nothing. */
const defaults = { per: 'subject', windowMs: 5 * minuteMs, factor: 5, least: 100, cooldownMs: 60 * minuteMs } as const

/** What is watched for, by name. */
export function readWatches(reader: PolicyReader, place: Place): Map<string, Watch> {
  const entries = reader.map(place, 'a map of watches by name') ?? new Map<string, Field>()
  if (entries.size > watchesMax) {
    reader.problem(place, `has ${entries.size} watches; a policy has at most ${watchesMax}`)
  }
  const watches = new Map<string, Watch>()
  for (const [name, field] of [...entries].slice(0, watchesMax)) {
    if (parseName(name) === undefined) reader.problemAtKey(field, `the name of a watch must be ${nameRule}`)
    const watch = readWatch(reader, name, field)
    if (watch !== undefined) watches.set(name, watch)
  }
  return watches
}

function readWatch(reader: PolicyReader, name: string, place: Field): Watch | undefined {
  const fields = reader.fields(place, 'a watch', keys, ['alert'])
  if (fields === undefined) return undefined
  const field = <T>(key: (typeof keys)[number], read: (at: Field) => T, none: T): T => {
    const at = fields.get(key)
    return at === undefined ? none : read(at)
  }
  const alert = field('alert', (at) => reader.oneOf(at, watchedAlerts), undefined)
  const per = field('per', (at) => reader.oneOf(at, ['subject', 'all'] as const), defaults.per)
  const windowMs = field('window', (at) => readWindow(reader, at), defaults.windowMs)
  const factor = field('factor', (at) => reader.integer(at, 2, factorMax), defaults.factor)
  const least = field('least', (at) => reader.integer(at, 1, Number.MAX_SAFE_INTEGER), defaults.least)
  const cooldown = field('cooldown', (at) => readCooldown(reader, at), defaults.cooldownMs)
  if (alert === undefined || per === undefined || windowMs === undefined) return undefined
  if (factor === undefined || least === undefined || cooldown === undefined) return undefined
  return { name, alert, per, windowMs, factor, least, cooldownMs: cooldown }
}

function readWindow(reader: PolicyReader, at: Field): number | undefined {
  const ms = reader.text(at, 'a duration in whole minutes such as 5m or 1h', parseDurationMs)
  if (ms === undefined || (ms % minuteMs === 0 && ms <= windowMsMax)) return ms
  return reader.problem(at, `must be whole minutes, from 1m to ${windowMsMax / minuteMs}m`)
}

function readCooldown(reader: PolicyReader, at: Field): number | undefined {
  const ms = reader.text(at, 'a duration such as 30m, 2h or 1d', parseDurationMs)
  if (ms === undefined || (ms >= cooldownMs.min && ms <= cooldownMs.max)) return ms
  return reader.problem(at, `must be from ${cooldownMs.min / minuteMs}m to ${cooldownMs.max / 86_400_000}d`)
}
