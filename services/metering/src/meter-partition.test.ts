import { encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { expect, test } from 'vitest'
import { type MeterOptions, PartitionMeter } from './meter-partition.ts'
import { newCounters } from './metrics.ts'
import { decisions } from './record-kinds.ts'
import { WatermarkWriter } from './watermark-writer.ts'

const topicId = '11111111-2222-3333-4444-555555555555'
const journal = '00000000-0000-4000-8000-000000000001'

const decision = (seq: number) =>
  `${encodeDecisionOpen({
    ...{ id: journal, tsMs: 1_763_000_000_000, subject: 's', keyId: '', plan: '', route: 'GET /', method: 'GET' },
    ...{ cost: 1, count: 1, outcome: 'allow', reason: 'ok', mode: 'enforce', charged: 'yes', deniedBy: '', limits: [] },
  })},"journal":"${journal}","seq":${seq}}`

const record = (position: number, text: string) => {
  const bytes = Buffer.from(text)
  return { position, timestampMs: 0, bytes, valueStart: 0, valueEnd: bytes.length, value: bytes }
}

/** A partition with nothing committed. `effects` are what it did, in order; `isFenced` is asked with them. */
function open(isFenced: (effects: readonly string[]) => boolean = () => false) {
  const effects: string[] = []
  const log = createLogger('test', 'silent')
  const store = {
    insert: async ({ table }: { readonly table: string }) => void effects.push(`insert into ${table}`),
    isInsertRunning: async () => false,
    numbersBefore: async () => new Map<string, number>(),
    repair: async () => undefined,
    lastInserted: async () => undefined,
  }
  const crash = () => undefined
  const options: MeterOptions = {
    ...{ kind: decisions, store, log, crash, counters: newCounters(), onWaiting: () => undefined },
    watermarks: new WatermarkWriter({ store, log, crash }),
    deadLetters: { send: async (_, letters) => void effects.push(`send ${letters.length} dead letters`) },
    blockMax: { records: 100, bytes: 1_000_000 },
    ...{ heartbeatIntervalMs: 1_000, pause: () => new Promise(() => undefined) },
  }
  const ownership = {
    heartbeat: async () => undefined,
    commit: async (offset: string, metadata = '') => {
      effects.push(`${metadata.includes('"from"') ? 'declare at' : 'commit'} ${offset}`)
    },
    isFenced: () => isFenced(effects),
  }
  const assigned = {
    ...{ topic: decisions.topic, partition: 0, commit: ownership.commit, isFenced: ownership.isFenced },
    facts: async () => ({ committed: undefined, first: 0n, end: 100n, topicId }),
    readRange: async () => [],
  }
  return { meter: new PartitionMeter(assigned, options), ownership, effects }
}

test('A block is declared, inserted, its dead letters and numbers are stored, and then it is committed', async () => {
  const { meter, ownership, effects } = open()
  await meter.start(ownership)
  await meter.process(ownership, [record(0, decision(0)), record(1, 'bad'), record(2, decision(2))])
  expect(effects).toEqual([
    ...['declare at 0', 'insert into decisions', 'send 1 dead letters'],
    ...['insert into numbers', 'insert into gaps', 'commit 3'],
  ])
})

test('A partition that is reassigned while its block is declared inserts nothing', async () => {
  const { meter, ownership, effects } = open((done) => done.includes('declare at 0'))
  await meter.start(ownership)
  const processed = meter.process(ownership, [record(0, decision(0))])
  await expect(processed).rejects.toMatchObject({ code: 'PARTITION_LOST' })
  expect(effects).toEqual(['declare at 0'])
})
