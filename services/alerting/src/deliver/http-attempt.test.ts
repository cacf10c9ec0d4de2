import { systemClock } from '@weir/core/clock.ts'
import type { Outgoing } from '@weir/runtime/outgoing/outgoing.ts'
import { expect, test } from 'vitest'
import { attemptByHttp } from './http-attempt.ts'

test('The answer of an endpoint that may be within the network is not kept', async () => {
  const answer = { status: 200, headers: {}, isCut: false, body: Buffer.from('what it says') }
  const outgoing: Outgoing = { send: async () => answer, close: async () => undefined }
  const attempt = { url: 'http://hooks.example/', headers: {}, body: '{}' }
  const keptOf = async (allowPrivate: boolean) =>
    (await attemptByHttp({ ...attempt, allowPrivate }, { outgoing, clock: systemClock })).answer
  expect([await keptOf(false), await keptOf(true)]).toEqual(['what it says', ''])
})
