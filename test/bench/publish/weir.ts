import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createDirectory } from '@weir/journal/directory/directory.ts'
import { PublisherSupervisor } from '@weir/journal/publish/publisher-supervisor.ts'
import { openWriter } from '@weir/journal/write/open-writer.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { makeRecord, type PublishResult, type PublishTask, paced } from './task.ts'

const task: PublishTask = JSON.parse(process.argv[2] ?? '{}')
const log = createLogger('bench', 'error')
const topics = [{ name: task.topic, partitions: 6 }]
const base = join(task.dir, 'journal')
const directory = await createDirectory(base, topics)
const writer = await openWriter(directory, { topics, maxBytes: 2 ** 30, log })
const decisions = writer.log(0)

let n = 0
async function append(count: number): Promise<void> {
  for (const end = n + count; n < end; n += 1) {
    const { key, openLine } = makeRecord(n)
    if (!decisions.append(key, openLine, true)) throw new Error('the journal is full')
  }
  if (!(await decisions.writtenInTime())) throw new Error('not written')
}

function start() {
  const { state } = writer
  const { journal, path } = directory
  const keeper = new PublisherSupervisor({
    start: { brokers: [task.broker], clientId: 'bench', base, journal, path, topics, shared: state.shared },
    log,
    onPartitions: () => undefined,
    onCorrections: () => undefined,
  })
  return { state, keeper }
}

/** The threads of this process that are not the first: the publisher, and V8's compiler and collector. */
function otherThreadsMicros(): number {
  const ticks = readdirSync('/proc/self/task')
    .filter((thread) => thread !== String(process.pid))
    .map((thread) => readFileSync(`/proc/self/task/${thread}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [])
  return ticks.reduce((sum, fields) => sum + Number(fields[11]) + Number(fields[12]), 0) * 10_000 // ticks of 10 ms
}

async function publish(): Promise<PublishResult> {
  if (task.perSecond === 'all') {
    while (n < task.records) await append(Math.min(500, task.records - n))
  }
  // A thread starts once; what is measured is its work, from when it has found Kafka on.
  const early = task.perSecond === 'all' ? undefined : start()
  if (early !== undefined && !(await waitUntil(() => early.state.get('replicas') > 0, { deadlineMs: 30_000 })))
    throw new Error('the publisher does not find Kafka')
  const cpuBefore = otherThreadsMicros()
  const startedAt = performance.now()
  const { keeper } = early ?? start()
  if (task.perSecond !== 'all') await paced(task.records, task.perSecond, (count) => void append(count))
  await writer.close()
  if (!(await keeper.drain(120_000))) throw new Error('Kafka did not take all')
  const result = { seconds: (performance.now() - startedAt) / 1_000, cpuMicros: otherThreadsMicros() - cpuBefore }
  await keeper.end()
  await directory.release()
  return result
}

process.stdout.write(JSON.stringify(await publish()))
process.exit(0)
