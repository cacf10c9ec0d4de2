import { expect, onTestFinished, test, vi } from 'vitest'
import { type FetchedBatch, waitAsNeeded } from './fetch-wait.ts'

const empty = { isEmpty: () => true, offsetLag: () => '0' }
const withRecords = { ...empty, isEmpty: () => false }

/** A group whose fetches are answered in turn as given; returns what each fetch asked for. */
async function fetchAll(answers: readonly FetchedBatch[][], sessionTimeout = 30_000) {
  const asked: { waitMs: number; minBytes: number }[] = []
  class Group {
    maxWaitTime = 250
    minBytes = 1_000_000
    sessionTimeout = sessionTimeout
    maxBytes = 30_000_000
    maxBytesPerPartition = 10_000_000
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

test('Partitions that are far behind bring less for as long as another one is read as it is written', async () => {
  const behind = { ...withRecords, offsetLag: () => '100000' }
  const asked: number[] = []
  const ten = [...Array(9).fill(behind), withRecords]
  const answers = [[behind, empty], [behind, behind, withRecords], ten, [behind], [behind]]
  class Group {
    maxWaitTime = 1_000
    minBytes = 1_000_000
    sessionTimeout = 30_000
    maxBytes = 30_000_000
    maxBytesPerPartition = 10_000_000
    async fetch(_: string) {
      return answers[asked.push(this.maxBytesPerPartition) - 1] ?? []
    }
  }
  waitAsNeeded(Group)
  const group = new Group()
  for (const _ of answers) await group.fetch('1')
  expect(asked).toEqual([10_000_000, 10_000_000, 3_333_334, 3_000_000, 10_000_000])
})

interface Answer {
  readonly isEmpty: () => boolean
  /** After the end of the wait. */
  readonly lateMs?: number
}

interface AskedFor {
  readonly endMs: number
  readonly minBytes: number
}

/** Fetches in turn from two brokers for a while; returns what each fetch asked for, and when it was to end. */
async function playTwo(forMs: number, answer: (node: 'a' | 'b', at: number) => Answer, workMs = 50) {
  let nowMs = 0
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => nowMs)
  onTestFinished(() => clock.mockRestore())
  const waiting: { readonly untilMs: number; readonly resolve: () => void }[] = []
  const pass = (ms: number) => new Promise<void>((resolve) => waiting.push({ untilMs: nowMs + ms, resolve }))
  const asked = { a: [] as AskedFor[], b: [] as AskedFor[] }
  class Group {
    maxWaitTime = 1_000
    minBytes = 1_000_000
    sessionTimeout = 30_000
    maxBytes = 30_000_000
    maxBytesPerPartition = 10_000_000
    async fetch(node: 'a' | 'b') {
      await Promise.resolve() // in which the original looks for newer metadata
      const { maxWaitTime, minBytes } = this
      const { isEmpty, lateMs = 0 } = answer(node, asked[node].length)
      asked[node].push({ endMs: nowMs + maxWaitTime, minBytes })
      await pass(maxWaitTime + lateMs)
      return [{ ...empty, isEmpty }]
    }
  }
  waitAsNeeded(Group)
  const group = new Group()
  const play = async (node: 'a' | 'b', delayMs: number) => {
    for (await pass(delayMs); nowMs < forMs; await pass(workMs)) await group.fetch(node)
  }
  const playing = [play('a', 0), play('b', 400)]
  while (waiting.length > 0) {
    const [next] = waiting.sort((a, b) => a.untilMs - b.untilMs).splice(0, 1)
    nowMs = next?.untilMs ?? nowMs
    next?.resolve()
    await new Promise(setImmediate) // all that follows from it
  }
  await Promise.all(playing)
  return asked
}

const endsOf = (of: readonly AskedFor[]) => of.map(({ endMs }) => endMs)

test('Fetches from two brokers that began at different times end together, and neither waits for longer', async () => {
  const { a, b } = await playTwo(5_000, () => withRecords)
  expect(endsOf(a).slice(-4)).toEqual(endsOf(b).slice(-4))
  const steps = endsOf(a).map((end, at, ends) => end - (ends[at - 1] ?? end))
  expect(Math.max(...steps)).toBeLessThanOrEqual(1_000)
  expect(a.length).toBeLessThanOrEqual(7)
})

test('Fetches end together even where each round is worked on for longer than half of the time', async () => {
  const { a, b } = await playTwo(12_000, () => withRecords, 600)
  expect(endsOf(a).slice(-4)).toEqual(endsOf(b).slice(-4))
  const steps = endsOf(a).map((end, at, ends) => end - (ends[at - 1] ?? end))
  expect(Math.max(...steps)).toBeLessThanOrEqual(2_000)
  expect(Math.max(...steps.slice(-4))).toBeLessThanOrEqual(1_000)
})

test('A broker that does not answer does not hurry the fetches from the others', async () => {
  const { a } = await playTwo(10_000, (node, at) =>
    node === 'b' && at === 2 ? { ...withRecords, lateMs: 20_000 } : withRecords,
  )
  expect(a.length).toBeLessThanOrEqual(12)
})

test('A fetch that gathers keeps its size and its time beside an idle broker', async () => {
  const { a, b } = await playTwo(5_000, (node) => (node === 'a' ? withRecords : empty))
  expect(new Set(a.map(({ minBytes }) => minBytes))).toEqual(new Set([1_000_000]))
  expect(b.map(({ minBytes }) => minBytes)).toContain(1)
  expect(a.length).toBeLessThanOrEqual(7)
})
