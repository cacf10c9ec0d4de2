import { formatTs } from '@weir/contracts/timestamp.ts'

/** What a contestant, a process of its own, is told as its only argument. */
export interface PublishTask {
  readonly broker: string
  /** Six partitions; empty. */
  readonly topic: string
  /** For its files. */
  readonly dir: string
  readonly records: number
  /** All at once, from a full journal or out of memory; or so many a second as they come. */
  readonly perSecond: number | 'all'
  readonly gzip: boolean
}

/** What it prints. CPU is that of its process, less what it takes to make the records. */
export interface PublishResult {
  readonly seconds: number
  readonly cpuMicros: number
}

/** How often records come where they come by and by: as the turns of a busy event loop do. */
const turnMs = 2

const keyOf = (n: number) => `customer-${n % 200}`

/** A decision with two limits, as the ingress writes it, up to journal and number: about 450 bytes. */
export function makeRecord(n: number): { readonly key: string; readonly openLine: string } {
  const id = `01935d2a-7c3e-7${String(n % 1_000).padStart(3, '0')}-8a4b-${String(n).padStart(12, '0')}`
  const limit = (name: string, size: number, resetMs: number) =>
    `{"name":"${name}","size":${size},"used":${n % size},"remaining":${size - (n % size)},"reset_ms":${resetMs}}`
  const key = keyOf(n)
  const openLine = `{"v":1,"id":"${id}","ts":"${formatTs(1_790_000_000_000 + n)}","subject":"${key}","key_id":"k-${n % 200}","plan":"free","route":"/v1/search/{index}","method":"POST","cost":${1 + (n % 5)},"count":1,"outcome":"allow","reason":"ok","mode":"enforce","charged":"yes","denied_by":"","limits":[${limit('minute', 3_000, n % 60_000)},${limit('day', 500_000, n % 86_400_000)}]`
  return { key, openLine }
}

/** Calls `turn` every few milliseconds with how many are due by then, until all have been; resolves at the end. */
export function paced(records: number, perSecond: number, turn: (count: number) => void): Promise<void> {
  const startedAt = performance.now()
  let done = 0
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      const due = Math.min(records, Math.floor(((performance.now() - startedAt) / 1_000) * perSecond))
      turn(due - done)
      done = due
      if (done < records) return
      clearInterval(timer)
      resolve()
    }, turnMs)
  })
}
