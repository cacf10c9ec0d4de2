import { expect, test } from 'vitest'
import { type LimitReport, limitTable } from './limit-report.ts'

const report: LimitReport = {
  name: 'minute',
  because: ['plan free'],
  own_version: true,
  algorithm: 'token_bucket',
  mode: 'shadow',
  size: 10,
  capacity: 30,
  window_ms: 60_000,
  period: null,
  by: ['subject'],
  block_ms: 0,
  exact: true,
  more: false,
  counts: [
    {
      key: 'weir:1:{acme}:minute',
      scope: '',
      used: 3,
      remaining: 27,
      reset_ms: 18_000,
      blocked_ms: 0,
      admits: true,
      retry_after_ms: 0,
    },
  ],
}

test('a table says of every limit what it is, why it applies and how it stands', () => {
  const table = limitTable([report, { ...report, name: 'per-ip', mode: 'enforce', counts: null }])
  expect(table.split('\n').map((line) => line.replaceAll(/ {2,}/g, ' | '))).toEqual([
    'LIMIT | SOURCE | ALGORITHM | ADMITS | USED | LEFT | FREE IN | BLOCKED | KEY',
    'minute | plan free, own version | token_bucket, shadow | 10 in 1 min, burst 30 | 3 | 27 | 18 s | no | weir:1:{acme}:minute',
    'per-ip | plan free, own version | token_bucket | 10 in 1 min, burst 30 | ? | ? | ? | counts requests per IP address: add --ip ADDRESS',
  ])
})

test('Money is shown as money', () => {
  const [count] = report.counts ?? []
  const counts = count === undefined ? [] : [{ ...count, used: 1_500_000_000, remaining: 500_000_000 }]
  const money: Partial<LimitReport> = { algorithm: 'fixed_window', currency: 'USD', size: 2_000_000_000, counts }
  expect(limitTable([{ ...report, ...money }])).toContain('2.00 USD in 1 min  1.50 USD  0.50 USD')
})
