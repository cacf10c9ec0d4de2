import { createLogger } from '@weir/runtime/logger.ts'
import { describe, expect, it } from 'vitest'
import { type Batch, createMeterBatch } from './meter-batch.ts'
import type { DeadLetter, InsertOutcome, RowBlock } from './ports.ts'

/** What happened, in order. */
function setUp(answer: (block: RowBlock, attempt: number) => InsertOutcome, lettersFail?: Error) {
  const events: string[] = []
  const letters: DeadLetter[] = []
  const inserted: string[] = []
  let attempts = 0
  const counters = { rows: 0, batches: 0, deadLetters: 0, insertRetries: 0 }
  const meterBatch = createMeterBatch({
    store: {
      async insert(block) {
        attempts += 1
        const outcome = answer(block, attempts)
        events.push(`insert ${block.token} ${outcome.kind}`)
        if (outcome.kind === 'inserted') inserted.push(...block.lines.toString().trimEnd().split('\n'))
        return outcome
      },
    },
    deadLetters: {
      async send(_, sent) {
        events.push(`letters ${sent.length}`)
        if (lettersFail !== undefined) throw lettersFail
        letters.push(...sent)
      },
    },
    counters,
    log: createLogger('test', 'silent'),
    pause: async (ms) => {
      events.push(`pause ${ms}`)
    },
  })
  const batch = (values: readonly string[]): Batch => ({
    topic: 'decisions',
    partition: 2,
    messages: values.map((value, at) => ({ offset: String(10 + at), key: null, value: Buffer.from(value) })),
    heartbeat: async () => {
      events.push('heartbeat')
    },
    commit: async (next) => {
      events.push(`commit ${next}`)
    },
  })
  return { meterBatch, batch, events, letters, inserted, counters }
}

const ok: InsertOutcome = { kind: 'inserted' }
const away: InsertOutcome = { kind: 'unavailable', error: new Error('refused') }
const wrong: InsertOutcome = { kind: 'unreadable', error: new Error('Cannot parse input') }

describe('meterBatch', () => {
  it('commits after the insert, the offset behind the last record', async () => {
    const { meterBatch, batch, events, counters } = setUp(() => ok)
    await meterBatch(batch(['{"a":1}', '{"a":2}']))
    expect(events).toEqual(['insert decisions:2:10-11 inserted', 'commit 12'])
    expect(counters).toMatchObject({ rows: 2, batches: 1 })
  })

  it('waits for ClickHouse with growing pauses and a heartbeat after each, and loses nothing', async () => {
    const { meterBatch, batch, events, inserted } = setUp((_, attempt) => (attempt < 3 ? away : ok))
    await meterBatch(batch(['{"a":1}']))
    const insert = 'insert decisions:2:10-10'
    expect(events).toEqual([
      `${insert} unavailable`,
      'pause 200',
      'heartbeat',
      `${insert} unavailable`,
      'pause 400',
      'heartbeat',
      `${insert} inserted`,
      'commit 11',
    ])
    expect(inserted).toHaveLength(1)
  })

  it('sends the one record that ClickHouse refuses to the dead letters, inserts the rest, and only then commits', async () => {
    const { meterBatch, batch, events, letters, inserted } = setUp(({ lines }) => (lines.includes('bad') ? wrong : ok))
    await meterBatch(batch(['{"a":1}', '{"a":2}', '{"a":"bad"}', '{"a":4}', '{"a":5}']))
    expect(letters.map(({ message, reason }) => [message.offset, reason])).toEqual([['12', 'Cannot parse input']])
    expect(inserted.map((line) => JSON.parse(line).offset)).toEqual([10, 11, 13, 14])
    expect(events.slice(-2)).toEqual(['letters 1', 'commit 15'])
  })

  it('does not commit when the dead letters cannot be kept', async () => {
    const { meterBatch, batch, events } = setUp(() => ok, new Error('Kafka is away'))
    await expect(meterBatch(batch(['not json']))).rejects.toThrow('Kafka is away')
    expect(events).toEqual(['letters 1'])
  })

  it('gives two blocks of the same records the same token, and blocks of other records another', async () => {
    const { meterBatch, batch, events } = setUp(() => ok)
    await meterBatch(batch(['{"a":1}', '{"a":2}']))
    await meterBatch(batch(['{"a":1}', '{"a":2}']))
    await meterBatch(batch(['{"a":1}', 'broken']))
    const tokens = events.filter((event) => event.startsWith('insert')).map((event) => event.split(' ')[1])
    expect(tokens[0]).toBe(tokens[1])
    expect(tokens[2]).not.toBe(tokens[0])
  })
})
