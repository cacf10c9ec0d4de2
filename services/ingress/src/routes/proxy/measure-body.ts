import type { IncomingMessage } from 'node:http'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { DecisionRequest } from '@weir/decide/types.ts'
import type { DimensionValues, RequestHead, RequestMeasure, RequestMeter } from '@weir/meters/measure-request.ts'
import type { MeterReader } from '@weir/meters/meter-reader.ts'
import { type Problem, problem } from '@weir/runtime/problem.ts'
import { costUnreadable, valuesAt } from '../../http/read-cost.ts'
import { exchangeMsMax } from './metered-exchange.ts'

/** A request's head as meters read it. */
export const headOf = ({ headers, url = '' }: IncomingMessage): RequestHead => ({
  values: (source) => valuesAt(source, { headers, url }),
})

/** Hands a body on to its meter, as long as `take` has space for it. */
export function scanInto(measuring: RequestMeter, take: (bytes: number) => boolean) {
  let isFull = false
  return {
    isFull: () => isFull,
    scan(chunk: Buffer): boolean {
      isFull = !take(chunk.length)
      if (!isFull) measuring.write(chunk)
      return !isFull
    },
  }
}

/** What a request may use, or why nobody can tell. */
export function measured(measuring: RequestMeter | undefined): {
  readonly measure: RequestMeasure | undefined
  readonly problem?: Problem
} {
  const found = measuring?.end()
  if (found === undefined || !('wrong' in found)) return { measure: found }
  return { measure: undefined, problem: costUnreadable(`This route is metered, but ${found.wrong}.`) }
}

const unmetered = problem(
  'unmetered-route',
  'Not metered',
  403,
  'This request cannot be metered: its response would come over another connection, or later. Send it without `background` or an upgrade.',
)
const unbounded = problem(
  'unpriced-model',
  'Not bounded',
  403,
  'A limit holds what this request may use at most, and nothing says how much that is. State the most tokens of the response, or ask for `maxOutput` and `context` in the meter.',
)

/** What a metered request is decided by, or why it is refused. */
export interface Metering {
  readonly problem?: Problem
  readonly use?: Pick<DecisionRequest, 'units' | 'settleMs' | 'meter' | 'dims'>
}

/** What the limits are to hold for a measured request, and how its usage is labelled. */
export function meteringOf(
  reader: MeterReader,
  measure: RequestMeasure,
  asked: { readonly limits: readonly Limit[]; readonly isUpgrade: boolean; readonly nowMs: number },
  dimensions: DimensionValues,
): Metering {
  const { meter, preset, readsAnswer } = reader
  const { most, isDeferred, isUnbounded } = measure
  if (isDeferred || asked.isUpgrade) return { problem: unmetered }
  const isMissing = ({ unit = '' }: Limit) => preset?.units.includes(unit) === true && !most.has(unit)
  if (isUnbounded && asked.limits.some(isMissing)) return { problem: unbounded }
  const dims = Object.fromEntries(dimensions.bounded(reader, measure.dimensions, asked.nowMs))
  return { use: { units: most, settleMs: readsAnswer ? exchangeMsMax : undefined, meter: meter.name, dims } }
}
