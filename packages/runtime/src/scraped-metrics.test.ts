import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { buckets, Histogram } from './histogram.ts'
import { LabelCells } from './label-cells.ts'
import { registerScraped } from './scraped-metrics.ts'

test('A scrape shows what the parts hold at that moment, and 0 before the first event', async () => {
  const register = new Registry()
  const took = new Histogram([0.005, 0.01])
  const counts = new LabelCells(2, () => ({ allow: 0, deny: 0 }))
  registerScraped(register, {
    weir_one_total: { help: 'One', read: () => counts.of('a').allow },
    weir_took_seconds: { help: 'Took', histogram: took },
    weir_by_size_seconds: { help: 'Took, by size', labels: ['size'], histograms: () => [[['large'], took]] },
    weir_asked_total: {
      help: 'Asked',
      labels: ['limit', 'outcome'],
      *cells() {
        for (const [limit, { allow, deny }] of counts.entries()) {
          yield [[limit, 'allow'], allow]
          yield [[limit, 'deny'], deny]
        }
      },
    },
  })
  counts.of('a')
  const page = async () => (await register.metrics()).split('\n').filter((line) => !/^(?:#.*)?$/.test(line))
  expect(await page()).toEqual([
    'weir_one_total 0',
    'weir_took_seconds_bucket{le="0.005"} 0',
    'weir_took_seconds_bucket{le="0.01"} 0',
    'weir_took_seconds_bucket{le="+Inf"} 0',
    'weir_took_seconds_sum 0',
    'weir_took_seconds_count 0',
    ...['0.005', '0.01', '+Inf'].map((le) => `weir_by_size_seconds_bucket{size="large",le="${le}"} 0`),
    'weir_by_size_seconds_sum{size="large"} 0',
    'weir_by_size_seconds_count{size="large"} 0',
    'weir_asked_total{limit="a",outcome="allow"} 0',
    'weir_asked_total{limit="a",outcome="deny"} 0',
  ])
  for (const seconds of [0.005, 0.0075, 0.0075, 4]) took.observe(seconds)
  counts.of('a').allow += 3
  expect(await page()).toEqual(
    expect.arrayContaining([
      'weir_one_total 3',
      'weir_took_seconds_bucket{le="0.005"} 1',
      'weir_took_seconds_bucket{le="0.01"} 3',
      'weir_took_seconds_bucket{le="+Inf"} 4',
      'weir_took_seconds_sum 4.02',
      'weir_took_seconds_count 4',
      'weir_asked_total{limit="a",outcome="allow"} 3',
    ]),
  )
  expect(await register.metrics()).toContain('# TYPE weir_by_size_seconds histogram\n')
})

test.each(Object.entries(buckets))('Bounds of %s buckets ascend, as observing expects', (_, bounds) => {
  expect(bounds).toEqual([...bounds].sort((one, other) => one - other))
})

test('Names beyond the bound share one cell, and no name ever loses its own', () => {
  const cells = new LabelCells(2, () => ({ count: 0 }))
  expect(cells.find('z')).toBe(cells.find('y'))
  for (const name of ['a', 'b', 'c', 'd', 'a', 'c']) cells.of(name).count += 1
  expect(Object.fromEntries(cells.entries())).toEqual({ a: { count: 2 }, b: { count: 1 }, _other: { count: 3 } })
})
