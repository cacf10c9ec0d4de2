import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import type { Tables } from '../../support/servers/tables.ts'
import { type Program, startProgram } from '../ingress/start-program.ts'
import { processCpuSeconds } from '../process-cpu.ts'

/** How long after their decision rows could be asked for, and what that cost. */
export interface Latency {
  readonly p50Ms: number
  readonly p99Ms: number
  /** Microseconds a decision, by process. */
  readonly cpuUs: Readonly<Record<'writer' | 'kafka' | 'metering' | 'clickhouse', number>>
}

export interface LatencyServers {
  readonly brokers: string
  readonly kafkaPid: number
  readonly tables: Tables
  readonly metering: Program
}

/** What was visible when, by partition. */
export interface Sight {
  readonly atMs: number
  readonly lastOffset: ReadonlyMap<number, number>
}

/** When a row's decision was made, and where its record is. */
export interface Row {
  readonly partition: number
  readonly offset: string
  readonly ts_ms: string
}

const pollMs = 100
/** What a look costs ClickHouse is measured by so many afterwards, and taken off its figure. */
const looksMeasured = 10
const deadlineMs = 180_000
const sinceSql = 'ts >= fromUnixTimestamp64Milli({since:Int64})'

async function ask<Answer>(tables: Tables, query: string, since: number): Promise<Answer[]> {
  const answer = await tables.client.query({ query, query_params: { since }, format: 'JSONEachRow' })
  return answer.json<Answer>()
}

/** From each row's decision to the first look that saw it, in order. */
export function delays(rows: readonly Row[], sights: readonly Sight[]): number[] {
  const byPartition = Map.groupBy(rows, ({ partition }) => partition)
  const found: number[] = []
  for (const [partition, own] of byPartition) {
    const inOrder = own.toSorted((a, b) => Number(a.offset) - Number(b.offset))
    let at = 0
    for (const { offset, ts_ms } of inOrder) {
      while (at < sights.length - 1 && (sights[at]?.lastOffset.get(partition) ?? -1) < Number(offset)) at++
      found.push((sights[at]?.atMs ?? Number.NaN) - Number(ts_ms))
    }
  }
  return found.sort((a, b) => a - b)
}

/** Writes so many decisions a second and asks for them all the while. */
export async function measureLatency(servers: LatencyServers, perSecond: number, seconds: number): Promise<Latency> {
  const { tables, brokers, kafkaPid, metering } = servers
  const base = await mkdtemp(join(tmpdir(), 'weir-bench-journal-'))
  const readCpu = (writer: number) => ({
    writer,
    kafka: processCpuSeconds(kafkaPid),
    metering: processCpuSeconds(metering.pid),
    clickhouse: processCpuSeconds(tables.pid()),
  })
  const before = readCpu(0)
  const since = Date.now()
  const writer = await startProgram({
    file: 'test/bench/metering/write-decisions.ts',
    args: [brokers, base, String(perSecond), String(seconds)],
    env: {},
    ready: async () => true,
  })
  let writerCpu = 0
  const sights: Sight[] = []
  const look = async () => {
    try {
      writerCpu = processCpuSeconds(writer.pid)
    } catch {
      // It has ended; the last reading stands.
    }
    const rows = await ask<{ partition: number; last: string; n: string }>(
      tables,
      `SELECT partition, max(offset) AS last, count() AS n FROM weir.decisions WHERE ${sinceSql} GROUP BY partition`,
      since,
    )
    sights.push({ atMs: Date.now(), lastOffset: new Map(rows.map(({ partition, last }) => [partition, Number(last)])) })
    return rows.reduce((sum, { n }) => sum + Number(n), 0) >= perSecond * seconds
  }
  try {
    const isThere = await waitUntil(look, { deadlineMs, everyMs: pollMs })
    if (isThere !== true) throw new Error(`not all of ${perSecond * seconds} decisions were seen`)
    const after = readCpu(writerCpu)
    const [seenLooks, idle] = [sights.length, processCpuSeconds(tables.pid())]
    for (let one = 0; one < looksMeasured; one += 1) await look()
    const lookCpu = (processCpuSeconds(tables.pid()) - idle) / looksMeasured
    after.clickhouse -= lookCpu * seenLooks
    const rows = await ask<Row>(
      tables,
      `SELECT partition, offset, toUnixTimestamp64Milli(ts) AS ts_ms FROM weir.decisions WHERE ${sinceSql}`,
      since,
    )
    const sorted = delays(rows, sights)
    const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN
    const us = (name: keyof typeof after) => ((after[name] - before[name]) / rows.length) * 1e6
    const cpuUs = { writer: us('writer'), kafka: us('kafka'), metering: us('metering'), clickhouse: us('clickhouse') }
    return { p50Ms: at(0.5), p99Ms: at(0.99), cpuUs }
  } finally {
    await writer.close()
    await rm(base, { recursive: true, force: true })
  }
}
