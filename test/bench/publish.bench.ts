import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { createTopic, kafkaOptions } from '../support/servers/kafka-topics.ts'
import { startServer } from '../support/servers/start-server.ts'
import { processCpuSeconds } from './process-cpu.ts'
import type { PublishResult, PublishTask } from './publish/task.ts'
import { type BenchOptions, type BenchReport, spread } from './report.ts'

/** 100 MB: some seconds. */
const backlogRecords = 200_000
const pacedRecords = 10_000
const pacedPerSecond = 2_000

/** A run takes seconds; a busy machine may need many times that. */
const runDeadlineMs = 180_000

const contestants = {
  weir: { label: 'publisher thread, from the journal', program: 'weir.ts', gzip: false },
  plain: { label: 'kafkajs sendBatch, from memory', program: 'plain.ts', gzip: false },
  gzip: { label: 'kafkajs sendBatch, from memory, gzip', program: 'plain.ts', gzip: true },
} as const
type Name = keyof typeof contestants

interface Measured {
  readonly recordsPerSecond: number
  readonly cpuMicrosPerRecord: number
  readonly kafkaMicrosPerRecord: number
}

type Load = Pick<PublishTask, 'records' | 'perSecond'>

/** Records a second and CPU a record of what brings records to Kafka, beside kafkajs as it comes. */
export async function run({ rounds, progress }: BenchOptions): Promise<BenchReport> {
  const server = await startServer(kafkaServer)
  const options = kafkaOptions(server.address)
  const measure = async (name: Name, { records, perSecond }: Load): Promise<Measured> => {
    const { program, gzip } = contestants[name]
    const dir = await mkdtemp(join(tmpdir(), 'weir-bench-publish-'))
    const topic = await createTopic(options, 6)
    const task: PublishTask = { broker: server.address, topic, dir, records, perSecond, gzip }
    const kafkaBefore = processCpuSeconds(server.pid())
    const file = join(import.meta.dirname, 'publish', program)
    try {
      const args = [file, JSON.stringify(task)]
      const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: runDeadlineMs })
      const { seconds, cpuMicros }: PublishResult = JSON.parse(stdout)
      const kafkaMicros = (processCpuSeconds(server.pid()) - kafkaBefore) * 1e6
      return {
        recordsPerSecond: records / seconds,
        cpuMicrosPerRecord: cpuMicros / records,
        kafkaMicrosPerRecord: kafkaMicros / records,
      }
    } finally {
      await rm(dir, { recursive: true, force: true })
    }
  }
  const names = Object.keys(contestants) as Name[]
  const all = async (load: Load, round: number) => {
    const seen = new Map<Name, Measured>()
    for (const name of round % 2 === 0 ? names : names.toReversed()) seen.set(name, await measure(name, load))
    return seen
  }
  const backlog: Map<Name, Measured>[] = []
  const paced: Map<Name, Measured>[] = []
  try {
    await measure('plain', { records: 20_000, perSecond: 'all' }) // warms up Kafka; not counted
    for (let round = 0; round < rounds; round += 1) {
      backlog.push(await all({ records: backlogRecords, perSecond: 'all' }, round))
      paced.push(await all({ records: pacedRecords, perSecond: pacedPerSecond }, round))
      progress(`round ${round + 1} of ${rounds}`)
    }
  } finally {
    await server.close()
  }
  return report(backlog, paced)
}

type Rounds = readonly ReadonlyMap<Name, Measured>[]

function report(backlog: Rounds, paced: Rounds): BenchReport {
  const names = Object.keys(contestants) as Name[]
  const of = (rounds: Rounds, name: Name, what: keyof Measured) =>
    spread(rounds.map((round) => round.get(name)?.[what] ?? Number.NaN))
  const table = (title: string, rounds: Rounds) => ({
    title,
    columns: ['records/s', 'CPU µs/record', "Kafka's CPU µs/record"],
    rows: names.map((name) => ({
      label: contestants[name].label,
      values: (['recordsPerSecond', 'cpuMicrosPerRecord', 'kafkaMicrosPerRecord'] as const).map((what) =>
        of(rounds, name, what),
      ),
    })),
  })
  const ratio = (label: string, rounds: Rounds, what: keyof Measured) => ({
    label,
    ...spread(
      rounds.map((round) => (round.get('weir')?.[what] ?? Number.NaN) / (round.get('plain')?.[what] ?? Number.NaN)),
    ),
  })
  return {
    name: 'publish: decision records of 510 bytes to a topic of 6 partitions, acks=all',
    tables: [
      table(`${backlogRecords.toLocaleString('en-US')} that wait`, backlog),
      table(`${pacedPerSecond.toLocaleString('en-US')} a second as they come`, paced),
    ],
    rows: [],
    ratios: [
      ratio('records/s of a backlog, the publisher to sendBatch', backlog, 'recordsPerSecond'),
      ratio('CPU a record of a backlog, the publisher to sendBatch', backlog, 'cpuMicrosPerRecord'),
      ratio('CPU a record as they come, the publisher to sendBatch', paced, 'cpuMicrosPerRecord'),
    ],
  }
}
