import { expect, test } from 'vitest'
import { forecastUsage } from './forecast.ts'

const november = { fromMs: Date.parse('2026-11-01T00:00:00Z'), toMs: Date.parse('2026-12-01T00:00:00Z') }
const used = [{ route: 'GET /a', units: 10n ** 30n, decisions: 7n }]
const at = (time: string) => forecastUsage(used, november, Date.parse(time))

test('a forecast extends the mean pace so far to the whole period, in whole units', () => {
  expect(at('2026-11-04T00:00:00Z')).toEqual([{ route: 'GET /a', units: 10n ** 31n, decisions: 70n }])
  expect(at('2026-11-05T00:00:00Z')?.[0]?.decisions).toBe(52n)
})

test('a period is not forecast within its first day, and after its end it is what was used', () => {
  expect(at('2026-11-01T23:59:59.999Z')).toBeUndefined()
  expect(at('2026-11-02T00:00:00Z')?.[0]?.decisions).toBe(210n)
  expect(at('2026-12-09T00:00:00Z')).toEqual(used)
})
