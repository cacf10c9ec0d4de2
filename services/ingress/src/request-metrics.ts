import { reasons } from '@weir/core/limits/decision.ts'
import type { Policy } from '@weir/policy/policy.ts'
import type { LabelCells } from '@weir/runtime/label-cells.ts'
import { registerScraped } from '@weir/runtime/scraped-metrics.ts'
import type { Registry } from 'prom-client'
import type { DecisionMetrics, Outcomes } from './decide/decision-metrics.ts'
import { UncountedShare } from './decide/uncounted-share.ts'
import type { HttpMetrics } from './http/http-metrics.ts'

/** The reasons that an outcome can have. */
const reasonsOf = { allow: ['ok', 'limit', 'unavailable'], deny: reasons.filter((reason) => reason !== 'ok') } as const

type Series<Value> = readonly (readonly [labels: readonly string[], value: Value])[]

const seriesOf = <Cell, Value>(cells: LabelCells<Cell>, of: (name: string, cell: Cell) => Series<Value>) =>
  Array.from(cells.entries(), ([name, cell]) => of(name, cell)).flat()

const outcomes = (name: string, { allow, deny }: Outcomes): Series<number> => [
  [[name, 'allow'], allow],
  [[name, 'deny'], deny],
]

/** Registers what is counted of every decision. */
export function registerDecisions(register: Registry, metrics: DecisionMetrics, policy: () => Policy): void {
  const { entryPoints, sources } = metrics
  const uncounted = new UncountedShare(sources)
  /** Shows the names of the policy in force before their first event. */
  const named = () => {
    metrics.addNames(policy())
    return metrics
  }
  registerScraped(register, {
    weir_decisions_total: {
      help: 'Decisions, peeks left out',
      labels: ['entry_point', 'outcome', 'reason'],
      cells: () =>
        Object.entries(entryPoints).flatMap(([name, cell]) =>
          (['allow', 'deny'] as const).flatMap((outcome) =>
            reasonsOf[outcome].map((reason) => [[name, outcome, reason], cell[outcome][reason]] as const),
          ),
        ),
    },
    weir_decision_source_total: { help: 'Decisions by where they were made', label: 'source', readAll: () => sources },
    weir_decisions_without_redis_ratio: {
      help: 'Share of the decisions of the last five minutes that Redis did not count',
      read: () => uncounted.ratio,
    },
    weir_decision_duration_seconds: {
      help: 'From the head of a request until its decision is recorded, without the time in which it waited for capacity',
      labels: ['entry_point'],
      histograms: () => Object.entries(entryPoints).map(([name, { duration }]) => [[name], duration] as const),
    },
    weir_limit_decisions_total: {
      help: 'Decisions that asked a limit; deny for the one that refused',
      labels: ['limit', 'outcome'],
      cells: () => seriesOf(named().limits, outcomes),
    },
    weir_limit_utilization_ratio: {
      help: 'Used part of a limit after each decision that asked it',
      labels: ['limit'],
      histograms: () => seriesOf(named().limits, (name, { utilization }) => [[[name], utilization]]),
    },
    weir_route_decisions_total: {
      help: 'Decisions by route',
      labels: ['route', 'outcome'],
      cells: () => seriesOf(named().routes, outcomes),
    },
    weir_plan_decisions_total: {
      help: "Decisions by the subject's plan",
      labels: ['plan', 'outcome'],
      cells: () => seriesOf(named().plans, outcomes),
    },
  })
}

/** Registers the times of answers and of upstreams. */
export function registerHttp(register: Registry, { answers, upstreams }: HttpMetrics, policy: () => Policy): void {
  registerScraped(register, {
    weir_http_request_duration_seconds: {
      help: 'From the head of a request until the end of its answer',
      labels: ['entry_point', 'code'],
      histograms: () =>
        Object.entries(answers).flatMap(([name, { byCode }]) =>
          byCode.map(([code, duration]) => [[name, code], duration] as const),
        ),
    },
    weir_upstream_duration_seconds: {
      help: 'From the sending of a request to its upstream until the end of the answer',
      labels: ['upstream'],
      histograms: () => {
        for (const name of policy().upstreams.keys()) upstreams.of(name)
        return seriesOf(upstreams, (name, duration) => [[[name], duration]])
      },
    },
  })
}
