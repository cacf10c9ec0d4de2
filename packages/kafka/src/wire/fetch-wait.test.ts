import { expect, test } from 'vitest'
import { waitAsNeeded } from './fetch-wait.ts'

const empty = { isEmpty: () => true }
const withRecords = { isEmpty: () => false }

/** A group whose fetches are answered in turn as given; returns what each fetch asked for. */
async function fetchAll(answers: readonly { isEmpty(): boolean }[][], sessionTimeout = 30_000) {
  const asked: { waitMs: number; minBytes: number }[] = []
  class Group {
    maxWaitTime = 250
    minBytes = 1_000_000
    sessionTimeout = sessionTimeout
    async fetch(_: string) {
      const answer = answers[asked.length] ?? []
      asked.push({ waitMs: this.maxWaitTime, minBytes: this.minBytes })
      return answer
    }
  }
  waitAsNeeded(Group)
  const group = new Group()
  for (const _ of answers) await group.fetch('1')
  return asked
}

test('After an answer without a record a fetch waits up to a second, and ends at the first record', async () => {
  const [first, second, third, fourth] = await fetchAll([[withRecords, empty], [empty], [withRecords], [empty]])
  expect(first).toEqual({ waitMs: 0, minBytes: 1_000_000 })
  expect(second?.minBytes).toBe(1_000_000)
  expect(third).toEqual({ waitMs: 1_000, minBytes: 1 })
  expect(fourth?.minBytes).toBe(1_000_000)
  expect(fourth?.waitMs).toBeLessThanOrEqual(250)
})

test('An idle fetch ends well before the session of the member does', async () => {
  expect((await fetchAll([[empty], [empty]], 3_000))[1]).toEqual({ waitMs: 500, minBytes: 1 })
})

test('A group whose partitions are all paused looks again as soon as it gathers', async () => {
  expect((await fetchAll([[], []]))[1]?.minBytes).toBe(1_000_000)
})
