import { expect, it } from 'vitest'
import { FairSlots, sharerOf } from './fair-slots.ts'

const takenBy = (slots: FairSlots, subject: string) => {
  let taken = 0
  while (slots.hasFor(sharerOf(subject))) {
    slots.take(subject)
    taken += 1
  }
  return taken
}

it('One subject can take half of the slots, the next one no more than a quarter, and forty subjects together leave some for others', () => {
  const slots = new FairSlots(1_024)
  const taken = Array.from({ length: 40 }, (_, n) => takenBy(slots, `s${n}`))
  expect(taken[0]).toBe(512)
  expect(Math.max(...taken.slice(1))).toBeLessThanOrEqual(256)
  expect(1_024 - slots.taken).toBeGreaterThan(16)
  slots.release('s0')
  expect([slots.hasFor('s0'), slots.hasFor('other')]).toEqual([false, true])
})

it('All networks of one IPv6 /48 share like one subject, and other networks and addresses do not share with them', () => {
  const slots = new FairSlots(16)
  expect(takenBy(slots, sharerOf('ip:2001:db8:0:1::/64'))).toBe(8)
  for (let n = 0; n < 4; n += 1) slots.take(sharerOf('ip:2001:db8::/64'))
  const ask = (...subjects: string[]) => subjects.map((subject) => slots.hasFor(sharerOf(subject)))
  expect(ask('ip:2001:db8:0:2::/64', 'ip:2001:db8::/64')).toEqual([false, false])
  expect(ask('ip:2001:db8:1::/64', 'ip:2001::/64', 'ip:::/64', 'ip:192.0.2.1', 'named')).toEqual(Array(5).fill(true))
  expect(['ip:2001:db8:77:100::/56', 'ip:2001:db8:77::/48', 'ip:2001:db8::/32'].map(sharerOf)).toEqual([
    'ip:2001:db8:77',
    'ip:2001:db8:77',
    'ip:2001:db8:0',
  ])
})

it('With a share of all, a subject can take every slot', () => {
  expect(takenBy(new FairSlots(16, 1), 'only')).toBe(16)
})
