import { Socket } from 'node:net'
import { systemClock } from '@weir/core/clock.ts'
import { allowed } from '@weir/core/limits/decision.ts'
import type { LimitStore } from '@weir/core/limits/limit-store.ts'
import type { DecisionMetrics } from '@weir/ingress/decide/decision-metrics.ts'
import { DecisionService } from '@weir/ingress/decide/decision-service.ts'
import type { DecisionLog } from '@weir/ingress/decide/ports.ts'
import type { DecisionRequest } from '@weir/ingress/decide/types.ts'
import { createLivePolicy } from '@weir/ingress/policy-view.ts'
import type { RequestTraces } from '@weir/ingress/trace/request-trace.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { spread } from '../report.ts'

/** Of each side in a round, of some tens of milliseconds each: the clock of a thread moves in steps of up to 4. */
const turns = 10

const policy = requirePolicy(
  `
version: 1
limits:
  minute: { algorithm: fixed_window, size: 1000, window: 1m }
  day: { algorithm: fixed_window, size: 100000, period: day }
plans: { free: { limits: [minute, day] } }
routes: [{ match: GET /v1/things }]
subjects: { acme: { plan: free } }
`,
  'weir.yaml',
)

const states = ['minute', 'day'].map((name) => ({ name, size: 1_000, used: 400, remaining: 600, resetMs: 1 }))
const decision = allowed('ok', { charged: 'yes', limits: states })
/** Answers as Redis does, in no time. */
const store: LimitStore = { decide: async () => decision, refund: async () => false }
const log: DecisionLog = {
  append: () => true,
  openCoalesced: () => undefined,
  writtenInTime: () => Promise.resolve(true),
  finallyWritten: () => Promise.resolve(true),
}
const idempotencyRecords = {
  mark: () => undefined,
  hold: () => () => undefined,
  claim: async () => ({ kind: 'unknown' }) as const,
}

/** So many calls of what is measured. */
export type Work = (calls: number) => Promise<void>

interface Deciding {
  readonly isCounted: boolean
  readonly traces?: RequestTraces | undefined
  /** Around the log that takes everything in no time. */
  readonly logged?: ((log: DecisionLog) => DecisionLog) | undefined
  /** What is waited for after each decision. */
  readonly afterEach?: () => Promise<unknown>
}

/** Decides requests under two limits, with a record, without a network, and without a disk. */
export function deciding({ isCounted, traces, logged = (one) => one, afterEach }: Deciding): Work {
  const live = createLivePolicy(policy)
  const sinks = { store, log: logged(log), idempotencyRecords }
  const service = new DecisionService({ policy: live, clock: systemClock, ...sinks })
  if (!isCounted) Object.assign(service, { metrics: { count: () => undefined } satisfies Partial<DecisionMetrics> })
  const subject = policy.subjects.get('acme')
  const [route] = policy.routes
  if (subject === undefined || route === undefined) throw new Error('the policy has neither')
  const asked = { view: live.view, subject, route, keyId: 'k', ip: '192.0.2.1', method: 'GET', cost: 1, peek: false }
  const origin = { headers: {}, socket: new Socket() }
  return async (calls) => {
    for (let call = 0; call < calls; call += 1) {
      const startedAt = isCounted ? performance.now() : 0
      const trace = traces?.begin(origin, policy)?.start('POST /v1/check', startedAt, {})
      const ask: DecisionRequest = {
        ...asked,
        entryPoint: 'check',
        startedAt,
        named: undefined,
        idempotencyKey: undefined,
        trace: trace?.decision(),
      }
      await service.decide(ask)
      trace?.end({}, false)
      if (afterEach !== undefined) await afterEach()
    }
  }
}

/** Something with and without what is measured. */
export interface Pair {
  readonly label: string
  readonly calls: number
  /** Whether CPU of other threads counts, too. */
  readonly ofAllThreads?: boolean
  readonly without: Work
  /** The same with it. */
  readonly withIt: Work
}

/** CPU of the main thread, or of all threads, in microseconds a call. */
async function cost(work: Work, { calls, ofAllThreads = false }: Pair): Promise<number> {
  const read = (before?: NodeJS.CpuUsage) => (ofAllThreads ? process.cpuUsage(before) : process.threadCpuUsage(before))
  const before = read()
  await work(calls)
  const { user, system } = read(before)
  return (user + system) / calls
}

/** Medians of both, in turns. */
export async function compare(pair: Pair) {
  const costs = { without: [] as number[], withIt: [] as number[] }
  for (let turn = 0; turn < turns; turn += 1) {
    costs.without.push(await cost(pair.without, pair))
    costs.withIt.push(await cost(pair.withIt, pair))
  }
  const [plain, loaded] = [spread(costs.without).median, spread(costs.withIt).median]
  return { without: plain, added: loaded - plain }
}
