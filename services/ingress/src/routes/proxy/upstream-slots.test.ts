import { expect, it } from 'vitest'
import { UpstreamSlots } from './upstream-slots.ts'

it('of 20,000 requests that wait each gets a connection, though all leave at once, as when their upstream is closed', () => {
  const slots = new UpstreamSlots(1, 20_000, 1)
  const first = slots.enter('first')
  let served = 0
  for (let at = 0; at < 20_000; at += 1) {
    const slot = slots.enter(`subject-${at}`)
    const leave = () => {
      served += 1
      slot?.leave()
    }
    slot?.whenConnected(60_000, leave, () => undefined)
  }
  first?.leave()
  expect([served, slots.isBusy]).toEqual([20_000, false])
})
