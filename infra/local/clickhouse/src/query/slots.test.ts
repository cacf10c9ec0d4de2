import { expect, it } from 'vitest'
import { Slots } from './slots.ts'

const stays = new AbortController().signal

it('runs statements up to the limit, starts the waiting ones in order, and refuses more than may wait', async () => {
  const slots = new Slots({ runningMax: 1, waitingMax: 2 })
  const order: string[] = []
  const leave = await slots.take(stays)
  const second = slots.take(stays).then((next) => {
    order.push('second')
    return next
  })
  const third = slots.take(stays).then((next) => {
    order.push('third')
    return next
  })
  await expect(slots.take(stays)).rejects.toThrow('TOO_MANY_SIMULTANEOUS_QUERIES')
  leave()
  leave()
  const leaveSecond = await second
  expect([order, slots.running]).toEqual([['second'], 1])
  leaveSecond()
  const leaveThird = await third
  leaveThird()
  expect(slots.running).toBe(0)
})

it('frees the place of a waiting statement whose client disconnects', async () => {
  const slots = new Slots({ runningMax: 1, waitingMax: 1 })
  const leave = await slots.take(stays)
  const leaving = new AbortController()
  const waiting = slots.take(leaving.signal)
  leaving.abort(new Error('gone'))
  await expect(waiting).rejects.toThrow('gone')
  leave()
  expect(slots.running).toBe(0)
})
