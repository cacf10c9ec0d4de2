import { countsInFlight } from '../limits/algorithm-facts.ts'
import type { Decision, LimitState } from '../limits/decision.ts'
import { blockMsMaxOf, countsBeyond, pauseMsMax, refuses, shutOutMsOf } from '../limits/exceeding.ts'
import type { Algorithm, Limit, PeriodBoundaries } from '../limits/limit.ts'
import { type Charge, chargedLimits, costOf, holdMsOf, type LimitRequest } from '../limits/limit-store.ts'
import { decisionOf } from '../limits/raw-decision.ts'
import { statuses } from '../limits/script-protocol.ts'
import { algorithmModels } from './models.ts'
import { type ModelArguments, type Plan, stepBackMsMax } from './plan.ts'

/** The value of one key: a limit's count, its block, or the first answer under an idempotency key. */
export type ModelCell = CountCell | BlockCell | OnceCell

/** A count as its algorithm keeps it. Another algorithm's counts as none. */
interface CountCell {
  readonly kind: 'count'
  readonly algorithm: Algorithm
  readonly state: object
}

interface BlockCell {
  readonly kind: 'block'
  readonly untilMs: number
  /** How many there were in a row, of a limit whose blocks grow. */
  readonly count?: number
}

interface OnceCell {
  readonly kind: 'once'
  readonly untilMs: number
  readonly id: string
  readonly fingerprint: string | undefined
  readonly limits: readonly LimitState[]
}

/** As in lua/lib/idempotency.lua. */
const onceKeptMs = 600_000

/** One limit of a request with its key, and with boundaries if it has a calendar period. */
export interface ModelLimit {
  readonly limit: Limit
  readonly key: string
  readonly boundaries: PeriodBoundaries | undefined
}

type Cells = Pick<ReadonlyMap<string, ModelCell>, 'get'>
type Change = readonly [key: string, cell: ModelCell]

interface ModelResult {
  readonly decision: Decision
  /** What to store; empty if nothing was charged or blocked. */
  readonly changes: readonly Change[]
  /** Limits that started from scratch although their span had not ended. */
  readonly rebased: number
}

/** The state of a limit's count; undefined for none. */
function stateIn(cells: Cells, { limit, key }: ModelLimit): object | undefined {
  const cell = cells.get(key)
  return cell?.kind === 'count' && cell.algorithm === limit.algorithm ? cell.state : undefined
}

const planOf = (
  state: object | undefined,
  limit: ModelLimit,
  cost: number,
  nowUs: number,
  asked: Asked = {},
): Plan<object> => algorithmModels[limit.limit.algorithm].plan(state, argumentsOf(limit, asked), cost, nowUs)

const countChange = ({ limit, key }: ModelLimit, state: object): Change => [
  key,
  { kind: 'count', algorithm: limit.algorithm, state },
]

type Asked = Pick<LimitRequest, 'slots' | 'reservation'>

const argumentsOf = ({ limit, boundaries }: ModelLimit, { slots, reservation }: Asked): ModelArguments => ({
  size: limit.size,
  capacity: limit.capacity,
  span: slots !== undefined && countsInFlight(limit) ? { kind: 'window', ms: slots.ms } : limit.span,
  boundaries,
  holdMs: holdMsOf(limit, { reservation }),
})

const noState = { used: 0, remaining: 0, resetMs: 0 }
const blockKey = (key: string) => `${key}:blocked`
const onceKey = ({ scope, idempotency }: LimitRequest) =>
  `once:${scope.subject.length}:${scope.subject}:${idempotency?.key}`

/** Milliseconds until then; 0 if that is past, or if a clock ahead of this one wrote it. */
function leftMs(untilMs: number, keptMs: number, nowUs: number): number {
  const left = untilMs - Math.floor(nowUs / 1_000)
  return left > 0 && left <= keptMs + stepBackMsMax ? left : 0
}

function blockedMs(cells: Cells, { limit, key }: ModelLimit, nowUs: number): number {
  const msMax = blockMsMaxOf(limit)
  const cell = msMax > 0 ? cells.get(blockKey(key)) : undefined
  return cell?.kind === 'block' ? leftMs(cell.untilMs, msMax, nowUs) : 0
}

/** The block that a breach sets, as in lua/lib/block.lua. */
function nextBlock(cells: Cells, { limit, key }: ModelLimit, nowMs: number): BlockCell & { readonly ms: number } {
  const { blockMs, blockLengths } = limit
  if (blockLengths === undefined) return { kind: 'block', ms: blockMs, untilMs: nowMs + blockMs }
  const cell = cells.get(blockKey(key))
  const overMs = cell?.kind === 'block' ? nowMs - cell.untilMs : blockMs
  const isKnown = cell?.kind === 'block' && overMs < blockMs && -overMs <= blockMs + stepBackMsMax
  const count = Math.min((isKnown ? (cell.count ?? 0) : 0) + 1, blockLengths.length)
  const ms = blockLengths[count - 1] ?? blockMs
  return { kind: 'block', ms, untilMs: nowMs + ms, count }
}

interface PlannedLimit extends ModelLimit {
  readonly bit: number
  readonly plan: Plan<object>
  readonly blockedMs: number
}

const sumBits = (planned: readonly PlannedLimit[]) => planned.reduce((bits, { bit }) => bits + bit, 0)
const longest = (ms: readonly number[]) => Math.max(0, ...ms)

function stateOf({ limit, plan, blockedMs }: PlannedLimit, charged: boolean): LimitState {
  const { used, remaining, resetMs } = plan
  const shut = blockedMs > 0 && !charged
  return {
    name: limit.name,
    size: limit.capacity,
    used,
    remaining: shut ? 0 : remaining,
    resetMs: shut ? Math.max(resetMs, blockedMs) : resetMs,
  }
}

/** Decides one request as lua/scripts/decide.lua does, as a function of values: the caller stores `changes`. */
export function decideModel(
  cells: Cells,
  request: LimitRequest,
  limits: readonly ModelLimit[],
  nowUs: number,
): ModelResult {
  const planAll = (costFor: (limit: Limit) => number, from: Cells): readonly PlannedLimit[] =>
    limits.map((limit, at) => ({
      ...limit,
      bit: 2 ** at,
      plan: planOf(stateIn(from, limit), limit, costFor(limit.limit), nowUs, request),
      blockedMs: blockedMs(from, limit, nowUs),
    }))
  const nowMs = Math.floor(nowUs / 1_000)
  const look = (from: Cells) => planAll(() => 0, from).map((planned) => stateOf(planned, false))

  const repeated = repeatedOf(cells, request, nowUs)
  if (repeated !== undefined) {
    const now = look(cells)
    const then = repeated.limits.length === now.length ? repeated.limits : now
    const shown = now.map(({ name, size }, at): LimitState => ({ ...(then[at] ?? noState), name, size }))
    const bits = differ(repeated.fingerprint, request.idempotency?.fingerprint) ? 1 : 0
    const raw = { status: statuses.REPLAYED, bits, waitMs: 0, limits: shown, atUs: nowUs, repeats: repeated.id }
    return { decision: decisionOf(request, raw), changes: [], rebased: 0 }
  }

  /** A peek that would be allowed changes nothing. */
  const looked = (from: Cells, one: PlannedLimit): PlannedLimit => {
    if (one.limit.override?.isPeek !== true || one.plan.waitMs !== 0) return one
    return { ...one, plan: { ...planOf(stateIn(from, one), one, 0, nowUs), next: undefined } }
  }
  const plans = planAll((limit) => (limit.override?.isPeek ? 1 : costOf(limit, request)), cells).map((one) =>
    looked(cells, one),
  )
  const wanting = plans.filter(({ plan }) => plan.waitMs !== 0)
  const refusing = wanting.filter(({ limit }) => refuses(limit))
  const passing = wanting.filter(({ limit }) => !refuses(limit))
  const blocked = plans.filter(({ blockedMs }) => blockedMs > 0)
  const never = refusing.some(({ plan }) => plan.waitMs < 0)
  const waitMs = longest([...refusing.map(({ plan }) => plan.waitMs), ...blocked.map(({ blockedMs }) => blockedMs)])
  const found = { atUs: nowUs, repeats: '' }

  if (never || blocked.length > 0 || refusing.length > 0) {
    const isBreach = !never && blocked.length === 0
    const exceeded = isBreach && !request.peek ? refusing.filter(({ limit }) => shutOutMsOf(limit) > 0) : []
    const blocks = exceeded.map((one) => nextBlock(cells, one, nowMs))
    const changes = blocks.map((block, at): Change => [blockKey(exceeded[at]?.key ?? ''), block])
    const decision = decisionOf(request, {
      ...found,
      status: never ? statuses.COST_EXCEEDS_CAPACITY : isBreach ? statuses.DENIED : statuses.BLOCKED,
      bits: sumBits(never || isBreach ? refusing : blocked) + sumBits(passing),
      waitMs: never ? 0 : longest([waitMs, ...blocks.map(({ ms }) => ms)]),
      limits: look(changes.length === 0 ? cells : overlay(cells, changes)),
    })
    return { decision, changes, rebased: 0 }
  }

  /** What does not fit, and is counted all the same. */
  const beyond = (one: PlannedLimit): PlannedLimit => {
    if (one.plan.waitMs === 0 || !countsBeyond(one.limit) || one.limit.override?.isPeek === true) return one
    const state = stateIn(cells, one)
    const charge = { cost: costOf(one.limit, request), atUs: countsInFlight(one.limit) ? 0 : nowUs }
    const next = algorithmModels[one.limit.algorithm].raise(state, argumentsOf(one, request), charge, nowUs)
    return { ...one, plan: { ...planOf(next ?? state, one, 0, nowUs, request), next, rebased: one.plan.rebased } }
  }
  const charged = plans.map(beyond).filter(({ plan, limit }) => refuses(limit) || plan.waitMs === 0)
  const shown = request.peek ? look(cells) : plans.map((planned) => stateOf(beyond(planned), true))
  const allowed = { ...found, status: statuses.ALLOWED, bits: sumBits(passing), waitMs: 0, limits: shown }
  const decision = decisionOf(request, allowed)
  if (request.peek) return { decision, changes: [], rebased: 0 }
  const stored = charged.filter(({ plan }) => plan.next !== undefined)
  const changes = stored.flatMap((one) => (one.plan.next === undefined ? [] : [countChange(one, one.plan.next)]))
  return {
    decision,
    changes: request.idempotency === undefined ? changes : [...changes, firstAnswer(request, shown, nowMs)],
    rebased: stored.filter(({ plan }) => plan.rebased).length,
  }
}

const differ = (first: string | undefined, again: string | undefined) =>
  first !== undefined && again !== undefined && first !== again

function overlay(cells: Cells, changes: readonly Change[]): Cells {
  const changed = new Map(changes)
  return { get: (key) => changed.get(key) ?? cells.get(key) }
}

function repeatedOf(cells: Cells, request: LimitRequest, nowUs: number): OnceCell | undefined {
  const cell = request.idempotency === undefined || request.peek ? undefined : cells.get(onceKey(request))
  return cell?.kind === 'once' && leftMs(cell.untilMs, onceKeptMs, nowUs) > 0 ? cell : undefined
}

const firstAnswer = (request: LimitRequest, limits: readonly LimitState[], nowMs: number): Change => [
  onceKey(request),
  {
    kind: 'once',
    untilMs: nowMs + onceKeptMs,
    limits,
    id: request.idempotency?.id ?? '',
    fingerprint: request.idempotency?.fingerprint,
  },
]

/**
 * Pauses a limit as lua/scripts/pause.lua does: `changes` is empty if a longer pause stands, and `leftMs` is until its
 * end.
 */
export function pauseModel(
  cells: Cells,
  key: string,
  pauseMs: number,
  nowUs: number,
): { readonly changes: readonly Change[]; readonly leftMs: number } {
  const cell = cells.get(blockKey(key))
  const left = cell?.kind === 'block' ? leftMs(cell.untilMs, pauseMsMax, nowUs) : 0
  if (left >= pauseMs) return { changes: [], leftMs: left }
  const untilMs = Math.floor(nowUs / 1_000) + pauseMs
  return { changes: [[blockKey(key), { kind: 'block', untilMs }]], leftMs: pauseMs }
}

/**
 * Refunds one charged request as decide.lua does; empty if none of its charge counts any more. `renews`: the same is
 * charged now, whether it fits or not; with `atUs` 0 it only counts that as refused.
 */
export function refundModel(
  cells: Cells,
  request: LimitRequest,
  charge: Charge,
  limits: readonly ModelLimit[],
  nowUs: number,
  renews = false,
): readonly Change[] {
  const charged = new Set(chargedLimits(request, charge))
  return limits.flatMap((limit): Change[] => {
    if (!charged.has(limit.limit)) return []
    const model = algorithmModels[limit.limit.algorithm]
    const atUs = charge.atUs === 0 && model.givesBackLatest !== true ? nowUs : charge.atUs
    const refund = { cost: costOf(limit.limit, request), atUs }
    const state = stateIn(cells, limit)
    const isRefused = renews && charge.atUs === 0
    const before = isRefused ? undefined : model.refund(state, argumentsOf(limit, request), refund, nowUs)
    const again = { cost: refund.cost, atUs: isRefused && countsInFlight(limit.limit) ? 0 : nowUs }
    const next = renews ? model.raise(before ?? state, argumentsOf(limit, request), again, nowUs) : before
    return next === undefined ? [] : [countChange(limit, next)]
  })
}

/** How a limit of a settled decision stands afterwards. */
export interface SettledState extends Omit<LimitState, 'name' | 'size'> {
  readonly changed: boolean
}

/**
 * Charges a decision of `atUs` for `units` more, or less below 0, as lua/scripts/settle.lua does; what was held it
 * replaces.
 */
export function settleModel(
  cells: Cells,
  limits: readonly ModelLimit[],
  { request, units, atUs }: { readonly request: LimitRequest; readonly units: number; readonly atUs: number },
  nowUs: number,
): { readonly changes: readonly Change[]; readonly states: readonly SettledState[] } {
  const changes: Change[] = []
  const states = limits.map((limit): SettledState => {
    const state = stateIn(cells, limit)
    const model = algorithmModels[limit.limit.algorithm]
    const settled = argumentsOf(limit, request)
    const charged = settled.holdMs === undefined ? Math.max(0, -units) : costOf(limit.limit, request)
    const reduced = model.refund(state, settled, { cost: charged, atUs }, nowUs)
    const isVoid = atUs - nowUs > stepBackMsMax * 1_000
    const more = reduced === undefined ? units : charged + units
    const used = { cost: isVoid ? 0 : Math.max(0, more), atUs }
    const next = model.raise(reduced ?? state, { ...settled, holdMs: undefined }, used, nowUs) ?? reduced
    if (next !== undefined) changes.push(countChange(limit, next))
    const { waitMs: _, next: __, rebased: ___, ...now } = planOf(next ?? state, limit, 0, nowUs)
    return { changed: next !== undefined, ...now }
  })
  return { changes, states }
}
