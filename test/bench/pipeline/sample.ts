import {
  machineCpuSeconds,
  processCpuSeconds,
  residentMb,
  threadKindsCpuSeconds,
  writtenBytes,
} from '../process-cpu.ts'
import type { Stack } from './stack.ts'

/** What the stack has used so far, by process. */
interface Sample {
  readonly atMs: number
  readonly answered: number
  /** By process, and by `process, kind of thread`. */
  readonly cpu: ReadonlyMap<string, number>
  readonly written: ReadonlyMap<string, number>
  readonly memory: ReadonlyMap<string, number>
  readonly inserts: number
  /** CPU of everything else on the machine, this process left out. */
  readonly otherCpu: number
}

/** What a stretch of time took. */
export interface Stretch {
  readonly seconds: number
  readonly decisions: number
  /** Seconds by process, and by `process, kind of thread`; `all` is the sum of the processes. */
  readonly cpu: ReadonlyMap<string, number>
  /** Bytes to disk by process, and `all`. */
  readonly written: ReadonlyMap<string, number>
  /** Resident MB by process at the end, and `all`. */
  readonly memory: ReadonlyMap<string, number>
  readonly inserts: number
  /** Cores that programs beside the stack and this bench took, and the host. */
  readonly otherCores: number
}

async function takeSample(stack: Stack, answered: number): Promise<Sample> {
  const pids = Object.entries(await stack.pids())
  const query = "SELECT value FROM system.events WHERE event = 'InsertQuery'"
  const answer = await stack.clickhouse.query({ query, format: 'JSONEachRow' })
  const [{ value } = { value: '0' }] = await answer.json<{ value: string }>()
  const by = (read: (pid: number) => number) => new Map(pids.map(([name, pid]) => [name, read(pid)]))
  const cpu = by(processCpuSeconds)
  const stackCpu = [...cpu.values()].reduce((sum, one) => sum + one, 0)
  for (const [name, pid] of pids)
    for (const [kind, seconds] of threadKindsCpuSeconds(pid)) cpu.set(`${name}, ${kind}`, seconds)
  const { user, system } = process.cpuUsage()
  return {
    atMs: performance.now(),
    answered,
    cpu,
    inserts: Number(value),
    written: by(writtenBytes),
    memory: by(residentMb),
    otherCpu: machineCpuSeconds() - stackCpu - (user + system) / 1e6,
  }
}

/** Of two sums by name, with `all` over the processes. */
function difference(after: ReadonlyMap<string, number>, before: ReadonlyMap<string, number>): Map<string, number> {
  const found = new Map<string, number>()
  for (const [name, value] of after) {
    const earlier = before.get(name) ?? 0
    // A thread of a pool that ends takes what it used out of the sum, and so does a process that is started again.
    found.set(name, value < earlier ? 0 : value - earlier)
  }
  const processes = [...found].filter(([name]) => !name.includes(','))
  return found.set(
    'all',
    processes.reduce((sum, [, value]) => sum + value, 0),
  )
}

/** Watches the stack while `during` runs. */
export async function measureStretch(
  stack: Stack,
  during: () => Promise<unknown>,
  answered: () => number = () => 0,
): Promise<Stretch> {
  const before = await takeSample(stack, answered())
  await during()
  const after = await takeSample(stack, answered())
  const seconds = (after.atMs - before.atMs) / 1_000
  return {
    seconds,
    decisions: after.answered - before.answered,
    cpu: difference(after.cpu, before.cpu),
    written: difference(after.written, before.written),
    memory: difference(after.memory, new Map()),
    inserts: after.inserts - before.inserts,
    otherCores: (after.otherCpu - before.otherCpu) / seconds,
  }
}
