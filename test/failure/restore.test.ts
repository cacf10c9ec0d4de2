import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connectClickhouse, readRows } from '@weir/clickhouse/connect.ts'
import { topics } from '@weir/contracts/topics.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, it } from 'vitest'
import { countAlerts } from '../support/failure/alerts.ts'
import type { RunningLoad } from '../support/failure/drive-load.ts'
import { quotaSize } from '../support/failure/failure-policy.ts'
import { type HandDamage, openHandDamage, weirAudit } from '../support/failure/hand-damage.ts'
import { backupStatements, loseData, moveGroupBack, runInEngine } from '../support/failure/lost-data.ts'
import { exactly, playScenario } from '../support/failure/scenario.ts'
import { startStack } from '../support/failure/stack.ts'
import { weirOn } from '../support/failure/stack-command.ts'
import { untilRestored } from '../support/failure/until-restored.ts'
import { forFile, forTest } from '../support/opened.ts'

const perSecond = 300
const [fullBackup = '', nightlyBackup = '', restore = ''] = backupStatements

/** A record of an alert or a delivery is a row after this time at most. */
const rowLagMs = 60_000

/** What the newest migration made: without it the tables are those of the version before. */
const withoutNewestMigration = [
  'DROP TABLE weir.limits_15m_mv SYNC',
  'DROP TABLE weir.limits_15m SYNC',
  "DELETE FROM weir.schema_migrations WHERE name = 'limits_15m'",
]

// Nothing is killed but servers: no session has to end soon, and a backlog may be inserted in large blocks.
const stack = await forFile(startStack({ environment: { WEIR_KAFKA_SESSION_MS: '30000' } }))

const stop = (...names: readonly string[]) => Promise.all(names.map((name) => stack.stop(name)))
const release = (...names: readonly string[]) => Promise.all(names.map((name) => stack.release(name)))

async function until(condition: () => Promise<boolean>, deadlineMs: number): Promise<void> {
  const holds = () => condition().catch(() => false)
  expect(await waitUntil(holds, { deadlineMs, everyMs: 250 })).toBe(true)
}

/** Metering is stopped meanwhile, so that no block is partially in the backup. */
async function backUp(statement: string): Promise<void> {
  await stop('metering')
  await stop('clickhouse')
  await runInEngine(stack, [statement])
  await release('clickhouse')
  await release('metering')
}

async function ask<Row>(query: string): Promise<readonly Row[]> {
  const client = connectClickhouse(stack.addresses.clickhouse, 'failure-suite')
  try {
    return await readRows<Row>(client, query)
  } finally {
    await client.close()
  }
}

/** The rows of alerts and of deliveries, each as one text. */
async function readAlertLog(): Promise<readonly string[]> {
  const rows = await ask<{ row: string }>(`SELECT concat('alert ', toString(id)) AS row FROM weir.alerts FINAL
    UNION ALL SELECT concat(toString(alert_id), ' ', endpoint, ' ', toString(at), ' ', toString(attempt), ' ', outcome)
    FROM weir.deliveries FINAL`)
  return rows.map(({ row }) => row)
}

const countDecisions = async () => Number((await ask<{ n: string }>('SELECT count() AS n FROM weir.decisions'))[0]?.n)

async function expectEachAlertOnce(subjects: readonly string[]): Promise<void> {
  const { due, raised, delivered } = await countAlerts(stack, subjects)
  process.stdout.write(`  alerts due ${due.length}, raised ${raised.length}, delivered ${delivered.length}\n`)
  expect(due.length).toBeGreaterThan(0)
  expect({ raised, delivered }).toEqual({ raised: due, delivered: due })
}

async function expectCleanAudit(): Promise<void> {
  const { findings, compared } = await weirAudit(stack)
  process.stdout.write(`  audit compared ${JSON.stringify(compared)}, found ${findings.length}\n`)
  expect(findings).toEqual([])
}

const quotaKey = (subject: string) => `weir:1:{${subject}}:quota-day`

it('ClickHouse is lost and restored from an older backup: every decision is counted once, every alert and delivery is a row again', async () => {
  let lostRows: readonly string[] = []
  const { row, load } = await playScenario(stack, {
    fault: 'ClickHouse lost with its data, restored from a backup of the version before',
    perSecond,
    async strike({ load }) {
      await backUp(fullBackup)
      await load.forMs(3_000)
      const backedUpMs = Date.now()
      await backUp(nightlyBackup)
      const { length: rowsThen } = await readAlertLog()
      await until(async () => (await readAlertLog()).length > rowsThen, 60_000)
      lostRows = await readAlertLog()
      await loseData(stack, 'clickhouse')
      await load.forMs(3_000)

      await stop('metering', 'alerting', 'console')
      await runInEngine(stack, [restore, ...withoutNewestMigration])
      await release('clickhouse')
      expect(await countDecisions()).toBeGreaterThan(0)
      const restored = new Set(await readAlertLog())
      expect(lostRows.filter((one) => !restored.has(one)).length).toBeGreaterThan(0)
      const { stderr } = await weirOn(stack, 'migrate')
      expect(stderr).toContain('tables: applied limits_15m')
      await moveGroupBack(stack, 'weir-alert-log', [topics.alerts, topics.deliveries], backedUpMs - rowLagMs)
      await release('metering')
      await release('alerting', 'console')
      await load.forMs(3_000)
    },
  })
  expect(row).toEqual(exactly(row))
  await expectEachAlertOnce(load.quotaSubjects)
  await until(async () => {
    const rows = new Set(await readAlertLog())
    return lostRows.every((one) => rows.has(one))
  }, 30_000)
  const rows = await readAlertLog()
  expect(new Set(rows).size).toBe(rows.length)

  // A table that a migration adds is empty for what was restored, but for hours in which metering repaired a block.
  const { findings, left = [] } = await weirAudit(stack, '--repair')
  expect(findings.filter(({ what }) => !what.startsWith('limits_15m'))).toEqual([])
  expect(left).toEqual([])
  await expectCleanAudit()
})

it('Redis is lost with all its data: used quotas are back within seconds, every decision is counted once, every alert is out once', async () => {
  const hand = await forTest(openHandDamage(stack))
  const { row, load } = await playScenario(stack, {
    fault: 'Redis lost with its data',
    perSecond,
    async strike({ load }) {
      const isUsedUp = async () => ((await hand.usedByRows())[quotaKey(load.quotaSubjects[0] ?? '')] ?? 0) >= quotaSize
      await until(isUsedUp, 60_000)
      const used = await hand.usedByRows()
      const keys = Object.keys(used)
      await loseData(stack, 'redis')
      await stack.release('redis')
      const began = performance.now()
      await until(async () => {
        const now = await hand.usedByRedis(keys)
        return keys.every((key) => (now[key] ?? 0) >= (used[key] ?? 0))
      }, 15_000)
      process.stdout.write(`  ${keys.length} quotas back after ${((performance.now() - began) / 1_000).toFixed(1)} s\n`)
      await load.forMs(3_000)
    },
  })
  expect(row).toEqual(exactly(row))
  await expectEachAlertOnce(load.quotaSubjects)
  await untilRestored(stack)
  await expectCleanAudit()
})

/** Subjects whose quota nothing has been charged on. */
async function unusedOf({ quotaSubjects }: RunningLoad, hand: HandDamage): Promise<readonly string[]> {
  const used = await hand.usedByRedis(quotaSubjects.map(quotaKey))
  return quotaSubjects.filter((subject) => used[quotaKey(subject)] === 0)
}

const statusOf = async (key: string): Promise<number> => {
  const headers = { 'x-api-key': key, 'content-type': 'application/json' }
  const body = '{"route":"/failure","method":"GET"}'
  return (await fetch(`http://127.0.0.1:${stack.ports.api}/v1/check`, { method: 'POST', headers, body })).status
}

it('Kafka is lost with all its data: only what metering had not read is missing, weir.gaps names it, and nothing is counted twice', async () => {
  const hand = await forTest(openHandDamage(stack))
  const file = join(stack.dir, 'weir.yaml')
  const key = (await weirOn(stack, 'keys', 'create', 'wide-0', '--id', 'after-the-file')).stdout.trim()
  const { stdout: exported } = await weirOn(stack, 'export')
  writeFileSync(file, exported)
  let lostAtMs = 0
  let unused: readonly string[] = []
  const { row, ledger, load, missing } = await playScenario(stack, {
    fault: 'Kafka lost with its data, some of which metering had not read',
    perSecond,
    losesRecords: true,
    async strike({ load }) {
      await stop('metering')
      await load.forMs(3_000)
      await stack.hold('kafka')
      lostAtMs = load.progress.elapsedMs
      await loseData(stack, 'kafka')

      await stop('alerting', 'console')
      await stack.release('kafka')
      expect((await weirOn(stack, 'topics')).stderr).toContain('topics: created weir.decisions.v1')
      await stack.release('console')
      await weirOn(stack, 'apply', '--policy', file)
      unused = await unusedOf(load, hand)
      await release('metering', 'alerting')
      // A quota of which every decision is in the new Kafka.
      const isUsedUp = async () => (await unusedOf(load, hand)).length < unused.length - 2
      await until(isUsedUp, 90_000)
    },
  })
  expect(row).toEqual(exactly(row))
  expect(load.progress).toMatchObject({ cutOff: 0, undecided: {}, unrecorded: 0 })
  const lost = ledger.filter(({ id }) => missing.has(id))
  process.stdout.write(`  ${missing.size} records lost, of ${lost.length} answers\n`)
  expect(lost.length).toBeGreaterThan(0)
  // What was answered after Kafka's end was in a journal; progress is reported ten times a second.
  expect(Math.max(...lost.map(({ atMs }) => atMs))).toBeLessThan(lostAtMs + 1_000)
  await expectEachAlertOnce(unused)

  expect((await weirOn(stack, 'export')).stdout).toBe(exported)
  expect(await statusOf(key)).toBe(200)
  await weirOn(stack, 'keys', 'revoke', 'after-the-file')
  await until(async () => (await statusOf(key)) === 401, 10_000)
  await expectCleanAudit()
})
