import { readRaisedIds } from '@weir/clickhouse/alert-queries.ts'
import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { insertBlock, linesOf } from '@weir/clickhouse/insert.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { alertRow } from '../record/alert-row.ts'
import type { AlertHistory } from './ports.ts'

/**
 * An alert waits up to this long to learn whether it was raised before; without an answer it may be raised again, under
 * the same id.
 */
const questionMs = 1_000
/** Late alerts can wait longer: nothing is sent. */
const lateQuestionMs = 10_000

/** Reads and writes the alerts in ClickHouse. */
export function createAlertHistory(client: ClickHouseClient, log: Logger): AlertHistory {
  return {
    async raised(alerts) {
      try {
        const ids = alerts.map(({ id }) => id)
        return new Set(await readRaisedIds(client, ids, AbortSignal.timeout(questionMs)))
      } catch (error) {
        log.warn({ err: error, alerts: alerts.length }, 'not known whether alerts were raised before: raised')
        return new Set()
      }
    },
    async keepLate(found) {
      if (found.length === 0) return
      const ids = found.map(({ id }) => id)
      // An alert that was raised in time, and comes again with an adopted journal or a late correction, stays as it is.
      const known = new Set(await readRaisedIds(client, ids, AbortSignal.timeout(lateQuestionMs)))
      const alerts = found.filter(({ id }) => !known.has(id))
      if (alerts.length === 0) return
      const lines = linesOf(alerts.map((alert) => alertRow(alert, 'late')))
      await insertBlock(client, {
        table: 'alerts',
        lines,
        dedupToken: `late:${alerts[0]?.id}:${alerts.at(-1)?.id}:${alerts.length}`,
      })
    },
  }
}
