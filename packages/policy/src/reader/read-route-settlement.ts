import { settleMsMax } from '@weir/core/limits/check-limit-request.ts'
import { costMax } from '@weir/core/limits/limit-store.ts'
import type { Route } from '../policy.ts'
import { parseDurationMs } from '../policy-values.ts'
import type { Field, PolicyReader } from './policy-reader.ts'

/** Shorter, and nobody could settle in time. */
const settleMsMin = 1_000
const statusesMax = 16

type Settlement = Pick<Route, 'settleMs' | 'settleMax' | 'refundOn'>

/** A route's `settle`, `settleMax` and `refundOn`, each there only if it is written; undefined when one is wrong. */
export function readSettlement(reader: PolicyReader, fields: ReadonlyMap<string, Field>): Settlement | undefined {
  const [settleAt, maxAt, refundAt] = [fields.get('settle'), fields.get('settleMax'), fields.get('refundOn')]
  const settleMs = settleAt === undefined ? undefined : readSettle(reader, settleAt)
  const settleMax = maxAt === undefined ? undefined : reader.integer(maxAt, 0, costMax)
  const refundOn = refundAt === undefined ? undefined : readRefundOn(reader, refundAt)
  const isWrong =
    (settleAt !== undefined && settleMs === undefined) ||
    (maxAt !== undefined && settleMax === undefined) ||
    (refundAt !== undefined && refundOn === undefined)
  if (isWrong) return undefined
  return {
    ...(settleMs === undefined ? {} : { settleMs }),
    ...(settleMax === undefined ? {} : { settleMax }),
    ...(refundOn === undefined ? {} : { refundOn }),
  }
}

function readSettle(reader: PolicyReader, field: Field): number | undefined {
  const ms = reader.text(field, 'a duration such as 30s, 15m or 2h', parseDurationMs)
  if (ms === undefined || (ms >= settleMsMin && ms <= settleMsMax)) return ms
  return reader.problem(field, `must be from ${settleMsMin / 1_000}s to ${settleMsMax / 3_600_000}h`)
}

function readRefundOn(reader: PolicyReader, field: Field): readonly number[] | undefined {
  const places = reader.list(field, 'a list of statuses such as [502, 503, 504]')
  if (places === undefined) return undefined
  if (places.length > statusesMax) return reader.problem(field, `has ${places.length} statuses, at most ${statusesMax}`)
  const statuses = new Set<number>()
  for (const place of places) {
    const status = reader.integer(place, 400, 599)
    if (status === undefined) return undefined
    if (statuses.has(status)) return reader.problem(place, `${status} is named twice`)
    statuses.add(status)
  }
  return [...statuses]
}
