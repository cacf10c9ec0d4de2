import { afterEach, expect, test, vi } from 'vitest'
import { DelayQueue, type EnqueueRequest, type QueueTicket } from './delay-queue.ts'
import { DelayQueues } from './delay-queues.ts'
import { createManualTime } from './testing/manual-time.ts'

afterEach(() => void vi.useRealTimers())

const pacingMs = 100

interface Reported {
  readonly name: string
  readonly isGranted: boolean
  readonly atMs: number
}

const request = (wanted: Partial<EnqueueRequest> = {}): EnqueueRequest => {
  const plain = { subject: 'z', pacingMs, deadlineMs: 1e9, queueMax: 1_000, capacityMs: 0, retryMs: 0 }
  return { ...plain, ...wanted }
}

/** A queue whose entries write down their results, and use every grant. */
function openQueue(capacityMs = 0) {
  const time = createManualTime(vi)
  const reported: Reported[] = []
  let isEnded = false
  let released = 0
  const onReleased = () => {
    released += 1
  }
  const onEnded = () => {
    isEnded = true
  }
  const queue = new DelayQueue(capacityMs, onReleased, onEnded)
  const enqueue = (name: string, wanted: Partial<EnqueueRequest> = {}): QueueTicket | undefined => {
    const [subject = ''] = name
    const ticket = queue.enqueue(request({ subject, ...wanted }))
    void ticket?.wait().then((isGranted) => {
      reported.push({ name, isGranted, atMs: time.nowMs() })
      if (isGranted) ticket.release(true)
    })
    return ticket
  }
  const names = () => reported.filter(({ isGranted }) => isGranted).map(({ name }) => name)
  return { time, queue, reported, enqueue, names, isEnded: () => isEnded, released: () => released }
}

test('Requests that wait for one count are granted in the order in which they came, whatever their subjects', async () => {
  const { time, queue, enqueue, names, isEnded } = openQueue()
  const wanted = Array.from({ length: 50 }, (_, n) => `${'aaabbc'[n % 6]}${n}`)
  for (const name of wanted) enqueue(name)
  expect(queue.size).toBe(50)
  await time.pass(5_000)
  expect(names()).toEqual(wanted)
  expect(isEnded()).toBe(true)
})

test('A request that comes while others wait goes behind them, also one whose subject was just served', async () => {
  const { time, enqueue, names } = openQueue()
  for (const name of ['a0', 'a1', 'a2', 'b0']) enqueue(name)
  await time.pass(pacingMs)
  expect(names()).toEqual(['a0', 'a1'])
  enqueue('a3')
  await time.pass(1_000)
  expect(names()).toEqual(['a0', 'a1', 'a2', 'b0', 'a3'])
})

test('Grants begin when capacity is expected and come evenly, a larger cost with a longer pause behind it', async () => {
  const { time, enqueue, reported } = openQueue(250)
  enqueue('a0')
  enqueue('b0', { pacingMs: 3 * pacingMs })
  enqueue('c0')
  enqueue('d0')
  await time.pass(5_000)
  expect(reported.map(({ atMs }) => atMs)).toEqual([250, 350, 650, 750])
})

test('A request that finds the queue full, or could have no grant in time, is not accepted', () => {
  const { enqueue, queue } = openQueue(250)
  expect(enqueue('a0', { deadlineMs: 249 })).toBeUndefined()
  expect(enqueue('a0', { deadlineMs: 250 })).toBeDefined()
  expect(enqueue('a1', { deadlineMs: 349 })).toBeUndefined()
  expect(enqueue('a1', { deadlineMs: 350 })).toBeDefined()
  expect(enqueue('a2', { deadlineMs: 450, queueMax: 2 })).toBeUndefined()
  expect(enqueue('b0', { deadlineMs: 450, queueMax: 2 })).toBeUndefined()
  expect(enqueue('b0', { deadlineMs: 449, retryMs: 450 })).toBeUndefined()
  expect(queue.size).toBe(2)
})

test('A request that is pushed back beyond its deadline is told at the deadline, not later', async () => {
  const { time, queue, enqueue, reported, released } = openQueue()
  const first = queue.enqueue(request())
  const granted = first?.wait()
  enqueue('a0', { deadlineMs: 450 })
  enqueue('a1', { deadlineMs: 250 })
  enqueue('a2', { deadlineMs: 350 })
  await time.pass(0)
  expect(await granted).toBe(true)
  expect(first?.requeue({ capacityMs: 400, retryMs: 400 })).toBe(true)
  await time.pass(5_000)
  expect(reported).toEqual([
    { name: 'a1', isGranted: false, atMs: 250 },
    { name: 'a2', isGranted: false, atMs: 350 },
    { name: 'a0', isGranted: false, atMs: 450 },
  ])
  expect(released()).toBe(3)
})

test('A grant that finds no capacity goes back to the front and waits for it, or ends if that comes too late', async () => {
  const { time, queue, enqueue, reported, names } = openQueue()
  const ticket = queue.enqueue(request({ deadlineMs: 1_000 }))
  const first = ticket?.wait()
  enqueue('a0')
  await time.pass(0)
  expect(await first).toBe(true)
  expect(ticket?.requeue({ capacityMs: 400, retryMs: 400 })).toBe(true)
  const second = ticket?.wait()
  await time.pass(399)
  expect(names()).toEqual([])
  await time.pass(1)
  expect(await second).toBe(true)
  expect(ticket?.requeue({ capacityMs: 700, retryMs: 700 })).toBe(false)
  await time.pass(700)
  expect(reported).toEqual([{ name: 'a0', isGranted: true, atMs: 500 }])
})

test('Grants that found no capacity come again in their order, before all others', async () => {
  const { time, queue } = openQueue()
  const order: string[] = []
  const again: (() => void)[] = []
  const wait = (name: string) => {
    const ticket = queue.enqueue(request({ pacingMs: 0 }))
    void ticket?.wait().then(() => {
      order.push(name)
      again.push(() => {
        ticket.requeue({ capacityMs: 10, retryMs: 10 })
        void ticket.wait().then(() => {
          order.push(`${name} again`)
          ticket.release(true)
        })
      })
    })
  }
  for (const name of ['a', 'b', 'c']) wait(name)
  await time.pass(0)
  wait('d')
  for (const requeue of again.toReversed()) requeue()
  await time.pass(10)
  expect(order).toEqual(['a', 'b', 'c', 'a again', 'b again', 'c again', 'd'])
})

test('A grant that takes no capacity is followed by the next one immediately', async () => {
  const { time, queue, enqueue, reported } = openQueue()
  const ticket = queue.enqueue(request())
  void ticket?.wait().then(() => ticket.release(false))
  enqueue('a0')
  await time.pass(5)
  expect(reported).toMatchObject([{ name: 'a0', isGranted: true, atMs: 1 }])
})

test('A client that leaves makes space for those behind it, and gets no grant', async () => {
  const { time, enqueue, reported, queue } = openQueue()
  const tickets = ['a0', 'b0', 'c0'].map((name) => enqueue(name))
  tickets[0]?.cancel()
  tickets[1]?.cancel()
  expect(queue.size).toBe(1)
  await time.pass(1)
  expect(reported).toEqual([
    { name: 'a0', isGranted: false, atMs: 0 },
    { name: 'b0', isGranted: false, atMs: 0 },
    { name: 'c0', isGranted: true, atMs: 0 },
  ])
})

test('A request that is given up for limits of its own delays no other: the next goes on one pace later, as newcomers are told', async () => {
  const { time, queue, enqueue, reported } = openQueue()
  const ticket = queue.enqueue(request({ deadlineMs: 1_000 }))
  enqueue('a0')
  await time.pass(0)
  expect(ticket?.requeue({ capacityMs: pacingMs, retryMs: 86_400_000 })).toBe(false)
  expect(queue.waitMs).toBe(2 * pacingMs)
  await time.pass(1_000)
  expect(reported).toEqual([{ name: 'a0', isGranted: true, atMs: pacingMs }])
})

test('A ticket that was cancelled uses no grant, the first, one between, or the last', async () => {
  const { time, enqueue, names } = openQueue(pacingMs)
  const tickets = ['a0', 'a1', 'a2', 'a3', 'b0', 'b1'].map((name) => enqueue(name))
  for (const at of [0, 2, 5]) tickets[at]?.cancel()
  await time.pass(3 * pacingMs)
  expect(names()).toEqual(['a1', 'a3', 'b0'])
})

test('When the last request leaves, the queue ends and no timer is left', async () => {
  const { time, enqueue, isEnded } = openQueue(500)
  enqueue('a0')?.cancel()
  expect(isEnded()).toBe(true)
  expect(time.timers).toBe(0)
})

test('A queue has one timer, however many wait', () => {
  const { time, enqueue } = openQueue(500)
  for (let n = 0; n < 500; n += 1) enqueue(`${'abcde'[n % 5]}${n}`)
  expect(time.timers).toBe(1)
})

test('After any mixture of steps nothing is left of the requests that have gone', async () => {
  const time = createManualTime(vi)
  const queues = new DelayQueues()
  const tickets: QueueTicket[] = []
  const results = { granted: 0, denied: 0 }
  const use = async (ticket: QueueTicket, step: number) => {
    for (;;) {
      const isGranted = await ticket.wait()
      results[isGranted ? 'granted' : 'denied'] += 1
      if (!isGranted) return
      if (step % 2 === 0 && ticket.requeue({ capacityMs: 5, retryMs: 5 })) continue
      ticket.release(step % 3 === 0)
      return
    }
  }
  for (let step = 0; step < 2_000; step += 1) {
    const kind = (step * 7 + (step >> 3)) % 5
    if (kind === 3) await time.pass(3)
    else if (kind === 4) for (const gone of tickets.splice(step % Math.max(1, tickets.length), 2)) gone.cancel()
    else {
      const deadlineMs = time.nowMs() + 50 + ((step * 31) % 200)
      const ticket = queues.enqueue(`k${step % 3}`, request({ subject: `s${step % 17}`, deadlineMs, pacingMs: 3 }))
      if (ticket === undefined) continue
      tickets.push(ticket)
      void use(ticket, step)
    }
  }
  await time.pass(1_000)
  expect([queues.waiting, queues.busyKeys, time.timers]).toEqual([0, 0, 0])
  expect(Object.values(results).every((count) => count > 20)).toBe(true)
})

test('A few subjects cannot take the slots of all queues: beyond half of them each has less, and one that has none still gets one', () => {
  createManualTime(vi)
  const queues = new DelayQueues(16)
  const tickets: QueueTicket[] = []
  const accepted = (subject: string, wanted: number) => {
    const before = tickets.length
    for (let n = 0; n < wanted; n += 1) {
      const wish = request({ subject, deadlineMs: 500, queueMax: 10, capacityMs: 500, retryMs: 500 })
      const ticket = queues.enqueue(`k${subject}${n}`, wish)
      if (ticket !== undefined) tickets.push(ticket)
    }
    return tickets.length - before
  }
  expect([...'abcdefg'].map((subject) => accepted(subject, 20))).toEqual([8, 3, 1, 1, 1, 1, 1])
  for (const ticket of tickets) ticket.cancel()
  expect([queues.waiting, queues.busyKeys, accepted('d', 20)]).toEqual([0, 0, 8])
})

test('All queues together hold a bounded number of requests, and those that are over make space', async () => {
  const time = createManualTime(vi)
  const queues = new DelayQueues(3)
  const wish = request({ subject: 'a', deadlineMs: 50, queueMax: 10, capacityMs: 40, retryMs: 40 })
  const first = queues.enqueue('k1', wish)
  const over = queues.enqueue('k1', { ...wish, subject: 'b', deadlineMs: 1_000 })?.wait()
  expect(queues.enqueue('k2', { ...wish, subject: 'c' })).toBeDefined()
  expect([queues.waiting, queues.busyKeys, queues.enqueue('k3', { ...wish, subject: 'd' })]).toEqual([3, 2, undefined])
  first?.release(false)
  expect(queues.enqueue('k3', wish)).toBeDefined()
  await time.pass(40)
  expect(await over).toBe(true)
})

test('A drain accepts no new requests, serves those that wait until the grace is over, and then tells all of them', async () => {
  const time = createManualTime(vi)
  const queues = new DelayQueues()
  const results: string[] = []
  for (let n = 0; n < 10; n += 1) {
    const ticket = queues.enqueue('k', request({ subject: `s${n}`, queueMax: 100, capacityMs: 100, retryMs: 100 }))
    void ticket?.wait().then((isGranted) => {
      results.push(`${isGranted ? 'granted' : 'expired'} ${time.nowMs()}`)
      ticket.release(isGranted)
    })
  }
  let isDrained = false
  void queues.drain(350).then(() => {
    isDrained = true
  })
  expect(queues.enqueue('other', request({ capacityMs: 1, retryMs: 1 }))).toBeUndefined()
  await time.pass(349)
  expect([results, isDrained]).toEqual([['granted 100', 'granted 200', 'granted 300'], false])
  await time.pass(1)
  expect(results.slice(3)).toEqual(Array.from({ length: 7 }, () => 'expired 350'))
  expect([isDrained, queues.waiting, time.timers]).toEqual([true, 0, 0])
  await queues.drain(1)
})

test('A thousand requests that expire in one moment are told in portions, so that others are served in between', () => {
  createManualTime(vi)
  let released = 0
  const queue = new DelayQueue(
    60.5,
    () => (released += 1),
    () => {},
  )
  for (let n = 0; n < 1_000; n += 1) queue.enqueue(request({ pacingMs: 0, deadlineMs: 60.5, queueMax: 10_000 }))
  vi.advanceTimersToNextTimer()
  expect(released).toBe(200)
  vi.advanceTimersToNextTimer()
  expect(released).toBe(400)
})
