import { nanosPerRequestMax } from '@weir/core/prices/rate-card.ts'
import type { DecisionRequest } from '@weir/decide/types.ts'
import { DimensionValues, type RequestMeasure } from '@weir/meters/measure-request.ts'
import type { MeterReader } from '@weir/meters/meter-reader.ts'
import { type Problem, problem } from '@weir/runtime/problem.ts'
import { isProblem } from '../../http/decision-reply.ts'
import type { PolicyView } from '../../policy-view.ts'
import type { Ports } from '../../ports.ts'
import { askedMoney } from './exchange-money.ts'
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
  'A limit holds what this request may use at most, and nothing says how much that is, or it is more than any request may. State the most tokens of the response, or ask for `maxOutput` and `context` in the meter.',
)
const unpriced = (card: string, value: string) =>
  problem(
    'unpriced-model',
    'No price',
    403,
    `The rate card ${card} has no price for ${value === '' ? 'a request that names no model' : JSON.stringify(value)}. Use a model that has one, or add its price to the card.`,
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
    { subject, route, cost }: Pick<DecisionRequest, 'subject' | 'route' | 'cost'>,
    reader: MeterReader,
    measure: RequestMeasure,
  ): Metering => {
    const chosen = choose(view, request.headers.host, route)
    if (isProblem(chosen)) return {}
    const { preset, readsAnswer } = reader
    const { most, isDeferred, isUnbounded } = measure
    if (isDeferred || protocol !== undefined) return { problem: unmetered }
    const nowMs = clock.nowMs()
    const money = view.rates && askedMoney(view.rates, reader, measure, { cost, atMs: nowMs })
    if (money?.refusing !== undefined) {
      const { card, value } = money.refusing
      return { problem: unpriced(card.name, value) }
    }
    const { nanos = new Map<string, number>() } = money ?? {}
    const units = new Map(most)
    const isOpen = (unit: string) => {
      const found = nanos.get(unit)
      if (found !== undefined) return isUnbounded || found > nanosPerRequestMax
      return isUnbounded && preset?.units.includes(unit) === true && !most.has(unit)
    }
    for (const [unit, found] of nanos) units.set(unit, isOpen(unit) ? 0 : found)
    const mayBeOpen = isUnbounded || [...nanos.keys()].some(isOpen)
    for (const { unit = '', hold, mode } of mayBeOpen ? view.resolveLimits(subject, route) : []) {
      if (!isOpen(unit)) continue
      if (hold === undefined && mode === 'enforce') return { problem: unbounded }
      units.set(unit, Math.max(units.get(unit) ?? 0, hold ?? 0))
    }
    const dims = Object.fromEntries(dimensions.bounded(reader, measure.dimensions, nowMs))
    const settleMs = readsAnswer ? (chosen.upstream.maxDurationMs ?? exchangeMsMax) : undefined
    return { chosen, use: { units, settleMs, meter: reader.meter.name, dims } }
  }
  return { choose, meter }
}
