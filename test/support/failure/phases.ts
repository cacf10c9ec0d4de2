import { readFileSync } from 'node:fs'
import type { RunningLoad } from './drive-load.ts'
import type { LedgerEntry } from './ledger.ts'
import type { Stack } from './stack.ts'

/** A stretch of a load, and what the ingress's first thread used in it. */
export interface Phase {
  readonly fromMs: number
  readonly toMs: number
  readonly cpuNs: number
}

/** Of the thread that runs JavaScript, to the nanosecond. */
function mainThreadNs(pid: number | undefined): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[0])
}

export async function watchPhase(stack: Stack, load: RunningLoad, ms: number): Promise<Phase> {
  const pid = stack.pid('ingress')
  const fromMs = load.progress.elapsedMs
  const before = mainThreadNs(pid)
  await load.forMs(ms)
  return { fromMs, toMs: load.progress.elapsedMs, cpuNs: mainThreadNs(pid) - before }
}

const median = (values: readonly number[]): number => quantile(values, 0.5)

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

function figuresOf(ledger: readonly LedgerEntry[], { fromMs, toMs, cpuNs }: Phase) {
  const latencies = ledger.filter(({ atMs }) => atMs >= fromMs && atMs < toMs).map(({ latencyUs }) => latencyUs)
  return { cpuUs: cpuNs / 1_000 / latencies.length, p50: quantile(latencies, 0.5), p99: quantile(latencies, 0.99) }
}

export interface PhaseRatios {
  /** Of the main thread, per decision; like the others the median of the one phases against that of the others. */
  readonly cpu: number
  readonly p50: number
  readonly p99: number
  readonly baseline: ReturnType<typeof figuresOf>
}

export function comparePhases(
  ledger: readonly LedgerEntry[],
  base: readonly Phase[],
  other: readonly Phase[],
): PhaseRatios {
  const medians = (phases: readonly Phase[]) => {
    const figures = phases.map((phase) => figuresOf(ledger, phase))
    const of = (name: 'cpuUs' | 'p50' | 'p99') => median(figures.map((one) => one[name]))
    return { cpuUs: of('cpuUs'), p50: of('p50'), p99: of('p99') }
  }
  const [a, b] = [medians(base), medians(other)]
  return { cpu: b.cpuUs / a.cpuUs, p50: b.p50 / a.p50, p99: b.p99 / a.p99, baseline: a }
}
