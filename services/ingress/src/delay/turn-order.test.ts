import { expect, test } from 'vitest'
import { type Entrant, TurnOrder } from './turn-order.ts'

const spacingMs = 2

function openOrder() {
  let reads = 0
  let number = 0
  const order = new TurnOrder<Entrant>()
  const entrant = (subject: string): Entrant => {
    number += 1
    return {
      ...{ subject, number, round: 0 },
      get spacingMs() {
        reads += 1
        return spacingMs
      },
    }
  }
  const add = (subject: string) => {
    const made = entrant(subject)
    order.add(made)
    return made
  }
  return { order, add, reads: () => reads }
}

test('what is ahead of somebody is known without looking at who it is', () => {
  const { order, add, reads } = openOrder()
  for (let round = 0; round < 3; round += 1) for (let n = 0; n < 300; n += 1) add(`s${n}`)
  const before = reads()
  expect([order.aheadMs('new'), order.aheadMs('s0'), order.spacingMs]).toEqual([300 * spacingMs, 1_800, 1_800])
  order.takeFirst()
  expect([order.aheadMs('new'), order.spacingMs]).toEqual([599 * spacingMs, 1_798])
  expect(reads() - before).toBeLessThan(10)
})

test('turns that found no room come again in their order, before all others', () => {
  const { order, add } = openOrder()
  const [a0, a1] = [add('a'), add('a')]
  const b0 = add('b')
  add('a')
  expect([order.takeFirst(), order.takeFirst(), order.takeFirst()]).toEqual([a0, b0, a1])
  for (const waiter of [a0, a1, b0]) order.putBack(waiter)
  expect([order.takeFirst(), order.takeFirst(), order.takeFirst()]).toEqual([a0, b0, a1])
  for (const waiter of [a1, a0]) order.putBack(waiter)
  order.remove(a1)
  expect(order.takeFirst()).toBe(a0)
  expect(order.size).toBe(1)
})

test('after any mixture of steps nothing is left of those who have gone', () => {
  const { order, add } = openOrder()
  const there: Entrant[] = []
  for (let step = 0; step < 5_000; step += 1) {
    const kind = (step * 7 + (step >> 3)) % 5
    if (kind < 3) there.push(add(`s${(step * 31) % 17}`))
    else if (kind === 3) {
      const taken = order.takeFirst()
      if (taken === undefined) continue
      if (step % 2 === 0) order.putBack(taken)
      else there.splice(there.indexOf(taken), 1)
    } else for (const gone of there.splice(step % Math.max(1, there.length), 2)) order.remove(gone)
    expect(order.size).toBe(there.length)
  }
  while (order.takeFirst() !== undefined);
  expect([order.size, order.spacingMs, order.first, order.last]).toEqual([0, 0, undefined, undefined])
})
