import { ClickHouseError } from '@clickhouse/client'
import { expect, test } from 'vitest'
import type { Rollup } from '../audit/rollups.ts'
import { repairRollup } from './repair-rollup.ts'
import type { RepairSession } from './repair-session.ts'

const rollup: Rollup = {
  table: 'usage_total_15m',
  source: 'decisions',
  selects: [],
  columns: [],
  keys: ['ts'],
  sums: ['count'],
  unsigned: new Set<string>(),
  countsAbove: false,
  keptMs: undefined,
}

/** A repair whose statements all fail with a code. */
const failing = (code: string, cluster: object | undefined) => {
  const client = { cluster }
  const query = async () => {
    throw new ClickHouseError({ message: 'no', code, type: 'T' })
  }
  const nothing = async () => undefined
  return { client, query, pause: nothing, catchUp: nothing } as unknown as RepairSession
}
const span = { fromMs: 0, toMs: 3_600_000 }

test('Only a replica of a cluster that does not answer leaves a rollup uncompared; all else is for the caller to repeat', async () => {
  for (const code of ['198', '209', '210', '279']) {
    await expect(repairRollup(failing(code, undefined), rollup, span)).rejects.toMatchObject({ code })
    expect(await repairRollup(failing(code, { cluster: 'c', database: 'weir' }), rollup, span)).toBe('undetermined')
  }
  await expect(repairRollup(failing('241', { cluster: 'c' }), rollup, span)).rejects.toMatchObject({ code: '241' })
})
