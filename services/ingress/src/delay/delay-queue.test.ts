import { expect, test } from 'vitest'
import { DelayQueue, type Place, type Turn, type Wish } from './delay-queue.ts'
import { DelayQueues } from './delay-queues.ts'
import { createManualTime } from './testing/manual-time.ts'

const spacingMs = 100

interface Told {
  readonly name: string
  readonly turn: Turn
  readonly atMs: number
}

/** A queue whose waiters write down what they are told, and take room whenever it is their turn. */
function openQueue(roomMs = 0) {
  const time = createManualTime()
  const told: Told[] = []
  let isEnded = false
  let left = 0
  const queue = new DelayQueue(time, roomMs, {
    left: () => {
      left += 1
    },
    ended: () => {
      isEnded = true
    },
  })
  const join = (name: string, wish: Partial<Wish> = {}): Place | undefined => {
    const [subject = ''] = name
    const place = queue.join({ subject, spacingMs, deadlineMs: 1e9, queueMax: 1_000, roomMs: 0, retryMs: 0, ...wish })
    void place?.turn().then((turn) => {
      told.push({ name, turn, atMs: time.nowMs() })
      if (turn === 'yours') place.done(true)
    })
    return place
  }
  const names = (turn: Turn = 'yours') => told.filter((one) => one.turn === turn).map(({ name }) => name)
  return { time, queue, told, join, names, isEnded: () => isEnded, left: () => left }
}

test('of 50 who wait, each subject has a turn in every round, however many of it wait, and its first goes first', async () => {
  const { time, queue, join, names, isEnded } = openQueue()
  for (let n = 0; n < 30; n += 1) join(`a${n}`)
  for (let n = 0; n < 15; n += 1) join(`b${n}`)
  for (let n = 0; n < 5; n += 1) join(`c${n}`)
  expect(queue.size).toBe(50)
  await time.pass(5_000)
  const rounds = (from: number, to: number, subjects: string) =>
    Array.from({ length: to - from }, (_, at) => [...subjects].map((subject) => `${subject}${from + at}`)).flat()
  expect(names()).toEqual([...rounds(0, 5, 'abc'), ...rounds(5, 15, 'ab'), ...rounds(15, 30, 'a')])
  expect(isEnded()).toBe(true)
})

test('a subject that comes back after its turn waits for the round after, behind those who have not had one', async () => {
  const { time, join, names } = openQueue()
  for (const name of ['a0', 'a1', 'a2', 'b0']) join(name)
  await time.pass(spacingMs)
  expect(names()).toEqual(['a0', 'b0'])
  join('b1')
  await time.pass(spacingMs)
  join('b2')
  await time.pass(1_000)
  expect(names()).toEqual(['a0', 'b0', 'a1', 'b1', 'a2', 'b2'])
})

test('turns begin when room is expected and come evenly, a larger cost with a longer pause behind it', async () => {
  const { time, join, told } = openQueue(250)
  join('a0')
  join('b0', { spacingMs: 3 * spacingMs })
  join('c0')
  join('d0')
  await time.pass(5_000)
  expect(told.map(({ atMs }) => atMs)).toEqual([250, 350, 650, 750])
})

test('whoever finds the queue full, or could have no turn in time, is not taken', () => {
  const { join, queue } = openQueue(250)
  expect(join('a0', { deadlineMs: 249 })).toBeUndefined()
  expect(join('a0', { deadlineMs: 250 })).toBeDefined()
  expect(join('a1', { deadlineMs: 349 })).toBeUndefined()
  expect(join('a1', { deadlineMs: 350 })).toBeDefined()
  expect(join('a2', { deadlineMs: 400, queueMax: 2 })).toBeUndefined()
  expect(join('b0', { deadlineMs: 449, retryMs: 450 })).toBeUndefined()
  expect(queue.size).toBe(2)
})

test('one subject cannot take all places: where it has, another takes the last of them', async () => {
  const { time, join, names, queue } = openQueue(50)
  for (const name of ['a0', 'a1', 'a2']) join(name, { queueMax: 3 })
  expect(join('a3', { queueMax: 3 })).toBeUndefined()
  expect(join('b0', { queueMax: 3, deadlineMs: 100 })).toBeUndefined()
  for (const name of ['b0', 'c0', 'd0']) join(name, { queueMax: 3 })
  expect(join('b1', { queueMax: 3 })).toBeUndefined()
  await time.pass(1_000)
  expect([names('over'), names()]).toEqual([
    ['a2', 'a1'],
    ['a0', 'b0', 'c0'],
  ])
  expect(queue.size).toBe(0)
})

test('whoever is pushed back by others beyond their deadline is told then, not later', async () => {
  const { time, join, told, left } = openQueue()
  join('a0')
  join('a1', { deadlineMs: 150 })
  for (const name of ['b0', 'c0', 'd0']) join(name)
  await time.pass(5_000)
  expect(told.find(({ name }) => name === 'a1')).toEqual({ name: 'a1', turn: 'over', atMs: 150 })
  expect(left()).toBe(5)
})

test('a turn that finds no room goes back to the front and waits for room, or ends if that comes too late', async () => {
  const { time, queue, join, told, names } = openQueue()
  const place = queue.join({ subject: 'z', spacingMs, deadlineMs: 1_000, queueMax: 9, roomMs: 0, retryMs: 0 })
  const first = place?.turn()
  join('a0')
  await time.pass(0)
  expect(await first).toBe('yours')
  expect(place?.refused({ roomMs: 400, retryMs: 400 })).toBe(true)
  const second = place?.turn()
  await time.pass(399)
  expect(names()).toEqual([])
  await time.pass(1)
  expect(await second).toBe('yours')
  expect(place?.refused({ roomMs: 700, retryMs: 700 })).toBe(false)
  await time.pass(700)
  expect(told).toEqual([{ name: 'a0', turn: 'yours', atMs: 500 }])
})

test('a turn that takes no room is followed by the next at once', async () => {
  const { time, queue, join, told } = openQueue()
  const place = queue.join({ subject: 'z', spacingMs, deadlineMs: 1_000, queueMax: 9, roomMs: 0, retryMs: 0 })
  void place?.turn().then(() => place.done(false))
  join('a0')
  await time.pass(5)
  expect(told).toMatchObject([{ name: 'a0', turn: 'yours', atMs: 0 }])
})

test('whoever leaves makes room for those behind, and is told nothing but that', async () => {
  const { time, join, told, queue } = openQueue()
  const places = ['a0', 'b0', 'c0'].map((name) => join(name))
  places[0]?.leave()
  places[1]?.leave()
  expect(queue.size).toBe(1)
  await time.pass(1)
  expect(told).toEqual([
    { name: 'a0', turn: 'gone', atMs: 0 },
    { name: 'b0', turn: 'gone', atMs: 0 },
    { name: 'c0', turn: 'yours', atMs: 0 },
  ])
})

test('whoever is given up for limits of its own moves nobody: the others go on a turn later, and newcomers hear of that', async () => {
  const { time, queue, join, told } = openQueue()
  const place = queue.join({ subject: 'z', spacingMs, deadlineMs: 1_000, queueMax: 9, roomMs: 0, retryMs: 0 })
  join('a0')
  await time.pass(0)
  expect(place?.refused({ roomMs: spacingMs, retryMs: 86_400_000 })).toBe(false)
  expect(queue.waitMs).toBe(2 * spacingMs)
  await time.pass(1_000)
  expect(told).toEqual([{ name: 'a0', turn: 'yours', atMs: spacingMs }])
})

test('whoever has to wait longer than the limit takes rests until then, and one who rests can be displaced like any other', async () => {
  const { time, join, told, names } = openQueue()
  for (const name of ['a0', 'a1', 'a2']) join(name, { retryMs: 450, queueMax: 4 })
  join('b0', { queueMax: 4 })
  expect(join('a3', { queueMax: 4 })).toBeUndefined()
  join('c0', { queueMax: 4 })
  await time.pass(2_000)
  expect(names('over')).toEqual(['a2'])
  expect(told.filter(({ turn }) => turn === 'yours')).toEqual([
    { name: 'b0', turn: 'yours', atMs: 0 },
    { name: 'c0', turn: 'yours', atMs: 100 },
    { name: 'a0', turn: 'yours', atMs: 450 },
    { name: 'a1', turn: 'yours', atMs: 550 },
  ])
})

test('a stream of new subjects keeps nobody back: a round that has begun is closed', async () => {
  const { time, join, names } = openQueue()
  for (const name of ['a0', 'b0', 'c0']) join(name)
  await time.pass(0)
  join('a1')
  for (const name of [...'defghijklm']) {
    join(name)
    await time.pass(spacingMs)
  }
  expect(names()).toEqual(['a0', 'b0', 'c0', 'a1', ...'defghij'.slice(0, 7)])
})

test('a place that was given up uses no turn of its subject, the first, one between, or all', async () => {
  const { time, join, names } = openQueue(spacingMs)
  const places = ['a0', 'a1', 'a2', 'a3'].map((name) => join(name))
  for (let n = 0; n < 9; n += 1) join('b')?.leave()
  for (const name of ['b0', 'b1', 'c0', 'c1']) join(name)
  places[0]?.leave()
  places[2]?.leave()
  await time.pass(1_000)
  expect(names()).toEqual(['a1', 'b0', 'c0', 'a3', 'b1', 'c1'])
})

test('the last who leaves ends the queue, and no timer is left', async () => {
  const { time, join, isEnded } = openQueue(500)
  join('a0')?.leave()
  expect(isEnded()).toBe(true)
  expect(time.timers).toBe(0)
})

test('however many wait, there is one timer', () => {
  const { time, join } = openQueue(500)
  for (let n = 0; n < 500; n += 1) join(`${'abcde'[n % 5]}${n}`)
  expect(time.timers).toBe(1)
})

test('a few subjects cannot take the places of all queues: beyond half of them each has less, and one that has none still gets one', () => {
  const time = createManualTime()
  const queues = new DelayQueues(time, 16)
  const places: Place[] = []
  const joined = (subject: string, wanted: number) => {
    const before = places.length
    for (let n = 0; n < wanted; n += 1) {
      const wish = { subject, spacingMs, deadlineMs: 500, queueMax: 10, roomMs: 500, retryMs: 500 }
      const place = queues.join(`k${subject}${n}`, wish)
      if (place !== undefined) places.push(place)
    }
    return places.length - before
  }
  expect([...'abcdefg'].map((subject) => joined(subject, 20))).toEqual([8, 3, 1, 1, 1, 1, 1])
  for (const place of places) place.leave()
  expect([queues.waiting, queues.busyKeys, joined('d', 20)]).toEqual([0, 0, 8])
})

test('all queues together hold so many at most, and what is over makes room', async () => {
  const time = createManualTime()
  const queues = new DelayQueues(time, 3)
  const wish = { subject: 'a', spacingMs, deadlineMs: 50, queueMax: 10, roomMs: 40, retryMs: 40 }
  const first = queues.join('k1', wish)
  const over = queues.join('k1', { ...wish, subject: 'b', deadlineMs: 1_000 })?.turn()
  expect(queues.join('k2', { ...wish, subject: 'c' })).toBeDefined()
  expect([queues.waiting, queues.busyKeys, queues.join('k3', { ...wish, subject: 'd' })]).toEqual([3, 2, undefined])
  first?.done(false)
  expect(queues.join('k3', wish)).toBeDefined()
  await time.pass(40)
  expect(await over).toBe('yours')
})

test('drained, nobody new may wait, those who do have their turns until the grace is over, and then all are told', async () => {
  const time = createManualTime()
  const queues = new DelayQueues(time)
  const turns: string[] = []
  for (let n = 0; n < 10; n += 1) {
    const place = queues.join('k', {
      subject: `s${n}`,
      spacingMs,
      deadlineMs: 1e9,
      queueMax: 100,
      roomMs: 100,
      retryMs: 100,
    })
    void place?.turn().then((turn) => {
      turns.push(`${turn} ${time.nowMs()}`)
      place.done(turn === 'yours')
    })
  }
  let isDrained = false
  void queues.drain(350).then(() => {
    isDrained = true
  })
  expect(
    queues.join('other', { subject: 'x', spacingMs, deadlineMs: 1e9, queueMax: 100, roomMs: 1, retryMs: 1 }),
  ).toBeUndefined()
  await time.pass(349)
  expect([turns, isDrained]).toEqual([['yours 100', 'yours 200', 'yours 300'], false])
  await time.pass(1)
  expect(turns.slice(3)).toEqual(Array.from({ length: 7 }, () => 'over 350'))
  expect([isDrained, queues.waiting, time.timers]).toEqual([true, 0, 0])
  await queues.drain(1)
})

test('a thousand whose time is over at once are told in pieces, so that others have their turns between', () => {
  const runs: (() => void)[] = []
  const later = (_: number, run: () => void) => {
    runs.push(run)
    return () => {}
  }
  const time = { now: 0, nowMs: () => time.now, later }
  let left = 0
  const queue = new DelayQueue(time, 60, { left: () => (left += 1), ended: () => {} })
  for (let n = 0; n < 1_000; n += 1) {
    queue.join({ subject: `s${n}`, spacingMs: 0, deadlineMs: 60, queueMax: 10_000, roomMs: 0, retryMs: 0 })
  }
  time.now = 61
  runs.pop()?.()
  expect(left).toBe(200)
  runs.pop()?.()
  expect(left).toBe(400)
})
