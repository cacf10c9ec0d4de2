import { projectRoot } from '@weir/cli/project.ts'
import { connectClickhouse, readRows } from '@weir/clickhouse/connect.ts'
import { insertBlock } from '@weir/clickhouse/insert.ts'
import { migrate, readMigrations } from '@weir/clickhouse/migrate.ts'
import { expect, test } from 'vitest'
import { decisionInput, rowsOf } from '../../support/audit/decisions.ts'
import { forTest } from '../../support/opened.ts'
import { startClickhouseProxy } from '../../support/servers/clickhouse-proxy.ts'

test('A block that is sent again is dropped, though the profile of the user deduplicates nothing', async () => {
  const secure = await forTest(startClickhouseProxy())
  await secure.useProfile({ deduplicate_insert: 'disable', insert_deduplicate: '0' })
  const client = await forTest(connectClickhouse(secure.server.address, 'test'))
  await migrate(client, await readMigrations(`${projectRoot}/infra/clickhouse/migrations`))
  const lines = rowsOf([decisionInput({ subject: 'acme', tsMs: Date.now() })])
  for (const _ of [1, 2]) await insertBlock(client, { table: 'decisions', dedupToken: 'twice', lines })
  const raw = '(SELECT toUInt32(count()) FROM decisions) AS raw'
  const rollup = '(SELECT toUInt32(sum(count)) FROM usage_15m) AS rollup'
  expect(await readRows(client, `SELECT ${raw}, ${rollup}`)).toEqual([{ raw: 1, rollup: 1 }])
})
