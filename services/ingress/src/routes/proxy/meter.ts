import type { Limit } from '@weir/core/limits/limit.ts'
import type { DecisionRequest } from '@weir/decide/types.ts'
import { DimensionValues, type RequestMeasure } from '@weir/meters/measure-request.ts'
import type { MeterReader } from '@weir/meters/meter-reader.ts'
import { type Problem, problem } from '@weir/runtime/problem.ts'
import { isProblem } from '../../http/decision-reply.ts'
import type { PolicyView } from '../../policy-view.ts'
import type { Ports } from '../../ports.ts'
import { exchangeMsMax } from './metered-exchange.ts'
import type { IncomingRequest } from './proxied-request.ts'
import { type ChosenUpstream, createUpstreamChoice } from './upstream-choice.ts'
import { UpstreamHeaders } from './upstream-headers.ts'

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

/** What a metered request is decided by, or why it is refused; neither where it goes nowhere. */
interface Metering {
  readonly problem?: Problem
  readonly chosen?: ChosenUpstream
  readonly use?: Pick<DecisionRequest, 'units' | 'settleMs' | 'meter' | 'dims'>
}

/** Chooses upstreams; and says what the limits are to hold for a measured request, and how its usage is labelled. */
export function createMeter({ clock, environment = {} }: Pick<Ports, 'clock' | 'environment'>) {
  const dimensions = new DimensionValues()
  const choose = createUpstreamChoice(new UpstreamHeaders(environment))
  const meter = (
    { request, protocol }: IncomingRequest,
    view: PolicyView,
    { subject, route }: Pick<DecisionRequest, 'subject' | 'route'>,
    reader: MeterReader,
    measure: RequestMeasure,
  ): Metering => {
    const chosen = choose(view, request.headers.host, route)
    if (isProblem(chosen)) return {}
    const { preset, readsAnswer } = reader
    const { most, isDeferred, isUnbounded } = measure
    if (isDeferred || protocol !== undefined) return { problem: unmetered }
    const units = new Map(most)
    const isMissing = ({ unit = '' }: Limit) => preset?.units.includes(unit) === true && !most.has(unit)
    for (const { unit = '', hold, mode } of isUnbounded ? view.resolveLimits(subject, route).filter(isMissing) : []) {
      if (hold === undefined && mode === 'enforce') return { problem: unbounded }
      units.set(unit, Math.max(units.get(unit) ?? 0, hold ?? 0))
    }
    const dims = Object.fromEntries(dimensions.bounded(reader, measure.dimensions, clock.nowMs()))
    const settleMs = readsAnswer ? (chosen.upstream.maxDurationMs ?? exchangeMsMax) : undefined
    return { chosen, use: { units, settleMs, meter: reader.meter.name, dims } }
  }
  return { choose, meter }
}
