import { connectClickhouse } from '@weir/clickhouse/connect.ts'
import { describe, expect, it } from 'vitest'
import { exactly, playScenario } from '../support/failure/scenario.ts'
import { startStack } from '../support/failure/stack.ts'
import { keepDown, logOf } from '../support/failure/strikes.ts'
import { forFile } from '../support/opened.ts'

const stack = await forFile(startStack())

/** Longer than a group's session: a process that waits for ClickHouse must not lose its partitions. */
const downMs = 15_000
/** Of one insert, while memory is short. */
const insertBytesMax = 60_000_000

async function run(query: string): Promise<void> {
  const client = connectClickhouse(stack.addresses.clickhouse, 'failure-suite')
  try {
    await client.command({ query })
  } finally {
    await client.close()
  }
}

describe('ClickHouse', () => {
  it('down for longer than the session: metering waits, and counts every answered decision once', async () => {
    const { row } = await playScenario(stack, {
      fault: `ClickHouse down for ${downMs / 1_000} s`,
      perSecond: 500,
      strike: (scene) => keepDown(scene, 'clickhouse', downMs),
    })
    expect(row).toEqual(exactly(row))
  })

  it('out of memory: inserts that fail half-way are made whole once there is memory again', async () => {
    const { row } = await playScenario(stack, {
      fault: `ClickHouse out of memory for ${downMs / 1_000} s`,
      perSecond: 500,
      async strike({ load }) {
        await run('CREATE TABLE weir.hungry (n UInt64) ENGINE = MergeTree ORDER BY n')
        // For any block this view wants more memory than an insert has; the tables before it have accepted the block
        // by then.
        await run(`CREATE MATERIALIZED VIEW weir.hungry_mv TO weir.hungry AS SELECT length(groupArray(s.n)) AS n
          FROM (SELECT 1 AS one FROM weir.decisions LIMIT 1) AS d CROSS JOIN (SELECT number AS n FROM numbers(20000000)) AS s`)
        const url = `${stack.addresses.clickhouse}/?clickhouse_setting_max_memory_usage=${insertBytesMax}`
        stack.killInto('metering', [{ WEIR_CLICKHOUSE_URL: url }])
        await load.forMs(downMs)
        expect(logOf(stack, 'metering')).toMatch(/memory limit exceeded/i)
        await run('DROP VIEW weir.hungry_mv')
        await run('DROP TABLE weir.hungry')
        const before = stack.pid('metering')
        stack.signal('metering', 'SIGKILL')
        await stack.backAfter('metering', before)
      },
    })
    expect(row).toEqual(exactly(row))
  })
})
