import { parseJson } from '@weir/contracts/fields.ts'
import { WeirError } from '@weir/core/errors.ts'
import type { ComparedFigure, LoadReport } from './report.ts'
import type { Latencies } from './tally.ts'

const percentiles = ['p50', 'p90', 'p99', 'p99_9', 'max'] as const

const latencyFigures = (name: string, latencies: Latencies | null) =>
  percentiles.map((one) => [`${name} ${one.replace('_', '.')} ms`, latencies?.[one] ?? null] as const)

/** The figures of a load that a later one is compared by. */
function figuresOf({ total, decisions, limits }: LoadReport): ReadonlyMap<string, number | string | null> {
  const decided = decisions.reduce((sum, { count }) => sum + count, 0)
  const denied = decisions.reduce((sum, { allowed, count }) => sum + (allowed ? 0 : count), 0)
  return new Map<string, number | string | null>([
    ['answers/s', total.answered_per_second],
    ['failed', total.failed],
    ['unsent', total.unsent],
    ['refused %', decided === 0 ? null : (denied / decided) * 100],
    ...latencyFigures('latency', total.latency_ms),
    ...latencyFigures('service', total.service_ms),
    ...(limits ?? []).map(({ name, verdict }) => [`limit ${name}`, verdict] as const),
  ])
}

/** Compares a load with an earlier one, figure by figure. */
export function compareLoads(before: LoadReport, now: LoadReport): readonly ComparedFigure[] {
  const [then, today] = [figuresOf(before), figuresOf(now)]
  return [...new Set([...then.keys(), ...today.keys()])].map((figure) => {
    const [was, is] = [then.get(figure) ?? null, today.get(figure) ?? null]
    const isMeasured = typeof was === 'number' && typeof is === 'number' && was !== 0
    return { figure, before: was, now: is, change: isMeasured ? is / was - 1 : null }
  })
}

/** Reads what an earlier `weir load --json` printed. Throws COMMAND_INVALID for anything else. */
export function readLoadReport(text: string, name: string): LoadReport {
  const found = parseJson(text) as Partial<LoadReport> | null | undefined
  const isReport = Array.isArray(found?.decisions) && typeof found?.total?.answered_per_second === 'number'
  if (isReport) return found as LoadReport
  throw new WeirError('COMMAND_INVALID', `${name} is not the output of weir load --json.`)
}
