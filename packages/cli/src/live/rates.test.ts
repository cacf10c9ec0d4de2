import { expect, test } from 'vitest'
import { Rates, type SecondSums } from './rates.ts'

const at = (second: number) => new Date(second * 1_000).toISOString()
const sum = (count: number, denied_by = '', subject = 'acme') => ({
  ...{ subject, outcome: denied_by === '' ? 'allow' : 'deny', denied_by, count },
})
const second = (ts: number, ...subjects: ReturnType<typeof sum>[]): SecondSums => ({
  ts: at(ts),
  rows: subjects.map(({ outcome, denied_by, count }) => ({ outcome, denied_by, count })),
  subjects,
})

test('rates are of whole seconds: those in which the stream began, or began again, do not count', () => {
  const rates = new Rates(10)
  rates.begin()
  rates.second(second(0, sum(1_000)))
  rates.following()
  rates.second(second(1, sum(1_000)))
  rates.second(second(2, sum(10), sum(4, 'minute')))
  rates.second(second(3, sum(20)))
  rates.begin()
  rates.second(second(59, sum(1_000)))
  rates.following()
  rates.second(second(60, sum(1_000)))
  rates.second(second(61, sum(0)))
  expect(rates.seconds).toBe(3)
  expect(rates.all()).toEqual({ allowed: 10, refused: 4 / 3 })
  for (let later = 62; later < 72; later += 1) rates.second(second(later))
  expect([rates.seconds, rates.all()]).toEqual([10, { allowed: 0, refused: 0 }])
})

test('rates by subject are exact, whatever is listed; what a second does not name stands for itself', () => {
  const rates = new Rates(10)
  rates.following()
  rates.second(second(1))
  const { ts, subjects = [], rows } = second(2, sum(40), sum(8, 'minute'), sum(2, 'day'), sum(611, '', 'bolt'))
  rates.second({ ts, subjects, rows: [...rows, sum(30), sum(5, 'minute')] })
  rates.listed({
    ...{ subject: 'acme', key_id: 'acme-1' },
    limits: [
      { name: 'day', used: 10, size: 100 },
      { name: 'minute', used: 98, size: 100 },
      { name: 'shared', used: null, size: 1 },
    ],
  })
  expect(rates.subjects()).toEqual({
    rates: [
      {
        ...{ subject: 'acme', requests: 50, refused: 10, by: 'minute', keyId: 'acme-1' },
        nearest: { name: 'minute', share: 0.98 },
      },
      { subject: 'bolt', requests: 611, refused: 0, by: '', nearest: undefined, keyId: '' },
    ],
    others: { requests: 35, refused: 5 },
  })
})
