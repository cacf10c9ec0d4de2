import { createTopics } from '@weir/cli/commands/topics.ts'
import { topics } from '@weir/contracts/topics.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { describe, expect, it } from 'vitest'
import { type KafkaOffsets, openKafkaOffsets } from '../support/failure/kafka-offsets.ts'
import { exactly, playScenario } from '../support/failure/scenario.ts'
import { startStack } from '../support/failure/stack.ts'
import { keepDown } from '../support/failure/strikes.ts'
import { forFile } from '../support/opened.ts'

const stack = await forFile(startStack())

const downMs = 60_000

/** None while the partitions' leaders are being named. */
const endsOf = async (kafka: KafkaOffsets): Promise<bigint[]> => [
  ...(await kafka.ends(topics.decisions).catch(() => new Map<number, bigint>())).values(),
]

describe('Kafka', () => {
  it('down for a minute under load: every request is answered meanwhile, and counted once afterwards', async () => {
    const { row, load } = await playScenario(stack, {
      fault: `Kafka down for ${downMs / 1_000} s`,
      perSecond: 500,
      strike: (scene) => keepDown(scene, 'kafka', downMs),
    })
    expect(row).toEqual(exactly(row))
    expect(load.progress).toMatchObject({ cutOff: 0, undecided: {}, unrecorded: 0 })
  })

  it('down while the ingress is killed twice: what its dead processes had written is sent by the one that lives', async () => {
    const { row } = await playScenario(stack, {
      fault: 'ingress killed twice while Kafka is down',
      perSecond: 500,
      async strike({ load }) {
        await stack.hold('kafka')
        for (let kill = 0; kill < 2; kill += 1) {
          await load.forMs(4_000)
          const before = stack.pid('ingress')
          stack.signal('ingress', 'SIGKILL')
          await waitUntil(() => stack.pid('ingress') !== before, { deadlineMs: 10_000 })
          const { elapsedMs } = load.progress
          await load.until('answers again', ({ lastDecidedMs }) => lastDecidedMs > elapsedMs, 60_000)
        }
        await stack.release('kafka')
      },
    })
    expect(row).toEqual(exactly(row))
  })

  it('with more partitions under load: every answered decision is counted once', async () => {
    const { row } = await playScenario(stack, {
      fault: 'partitions of the decisions raised from 6 to 9',
      perSecond: 500,
      async strike({ load }) {
        const kafka = await openKafkaOffsets(stack.kafka)
        await kafka.raisePartitions(topics.decisions, 9)
        const isUsed = async () => (await endsOf(kafka)).filter((end) => end > 0n).length === 9
        const used = await waitUntil(isUsed, { deadlineMs: 120_000, everyMs: 500 })
        await kafka.close()
        expect(used).toBe(true)
        await load.forMs(3_000)
      },
    })
    expect(row).toEqual(exactly(row))
  })

  it('with the topic deleted and created again: its new life is counted from its first record', async () => {
    const kafka = await openKafkaOffsets(stack.kafka)
    await kafka.deleteTopic(topics.decisions)
    const recreated = async () => {
      await createTopics(stack.kafka, () => undefined).catch(() => undefined)
      return (await endsOf(kafka)).length === 6
    }
    expect(await waitUntil(recreated, { deadlineMs: 30_000, everyMs: 500 })).toBe(true)
    const { row } = await playScenario(stack, {
      fault: 'the topic of the decisions deleted and created again',
      perSecond: 500,
      async strike({ load }) {
        await load.forMs(5_000)
        // What was numbered for partitions that it had before waits until it has them again.
        await kafka.raisePartitions(topics.decisions, 9)
        await load.forMs(3_000)
      },
    })
    await kafka.close()
    expect(row).toEqual(exactly(row))
  })
})
