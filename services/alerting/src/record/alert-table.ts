import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { insertBlock, linesOf } from '@weir/clickhouse/insert.ts'
import { type AlertV1, alertFields, readAlert } from '@weir/contracts/alert.v1.ts'
import { giveUpAfterMs } from '@weir/contracts/delivery.v1.ts'
import { formatTs, parseTs } from '@weir/contracts/timestamp.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import type { DeliveryJob } from '../types.ts'
import {
  type AlertRow,
  noAlert,
  readAlertsById,
  readRaisedIds,
  readUnfinished,
  type UnfinishedRow,
} from './alert-queries.ts'

const timeOf = (rfc3339: string) => formatTs(Date.parse(rfc3339))
const secondOf = (rfc3339: string) => Math.floor(Date.parse(rfc3339) / 1_000)

/** The fields that columns have, whatever an alert calls them. */
type ColumnFields = Partial<
  Record<
    'endpoint' | 'limit' | 'decision_id' | 'period_start' | 'period_end' | 'window_start' | 'window_end' | 'until',
    string
  > &
    Record<'size' | 'used' | 'count' | 'percent', number>
>

/**
 * Builds a row of `weir.alerts`. An alert is `late` if its period was over when it was found: it is not sent. `silence`
 * is the name of the silence that it falls under; empty for none.
 */
export function alertRow({ id, type, subject, time, data }: AlertV1, state: 'raised' | 'late', silence = '') {
  // Other members are not checked: another program may have put anything there.
  const known = Object.keys(alertFields[type]).map((name) => [name, Reflect.get(data, name)])
  const fields: ColumnFields = Object.fromEntries(known)
  const { limit = '', size = 0, count = 0, used = count, percent = 0, decision_id = noAlert } = fields
  const { window_start = time, window_end = fields.until ?? time } = fields
  const { period_start = window_start, period_end = window_end } = fields
  return {
    id,
    type,
    subject,
    time: timeOf(time),
    state,
    silence,
    limit,
    size,
    used,
    percent,
    period_start: secondOf(period_start),
    period_end: secondOf(period_end),
    decision_id,
    incident: type === 'weir.quota.reached' ? id : type === 'weir.quota.resolved' ? data.resolves : noAlert,
    data: JSON.stringify(data),
  }
}

/**
 * An alert waits up to this long to learn whether it was raised before; without an answer it may be raised again, under
 * the same id.
 */
const questionMs = 1_000
/** Late alerts can wait longer: nothing is sent. */
const lateQuestionMs = 10_000

/** The alerts that were raised before, as far as ClickHouse knows. */
export type AlertHistory = ReturnType<typeof createAlertHistory>

/** Reads and writes the history of alerts in ClickHouse. */
export function createAlertHistory(client: ClickHouseClient, log: Logger) {
  const knownOf = async (alerts: readonly AlertV1[], timeoutMs: number): Promise<ReadonlySet<string>> => {
    const ids = alerts.map(({ id }) => id)
    return new Set(await readRaisedIds(client, ids, AbortSignal.timeout(timeoutMs)))
  }
  return {
    /** Returns the ids of those that were raised; none if ClickHouse does not answer in time: an alert never waits. */
    async raised(alerts: readonly AlertV1[]): Promise<ReadonlySet<string>> {
      try {
        return await knownOf(alerts, questionMs)
      } catch (error) {
        log.warn({ err: error, alerts: alerts.length }, 'unknown whether alerts were already raised: raised')
        return new Set()
      }
    },
    /** Stores alerts that come too late to be sent. Rejects if they are not stored. */
    async keepLate(found: readonly AlertV1[]): Promise<void> {
      if (found.length === 0) return
      // An alert that was raised in time, and comes again with an adopted journal or a late correction, stays as it is.
      const known = await knownOf(found, lateQuestionMs)
      const alerts = found.filter(({ id }) => !known.has(id))
      if (alerts.length === 0) return
      const lines = linesOf(alerts.map((alert) => alertRow(alert, 'late')))
      const dedupToken = `late:${alerts[0]?.id}:${alerts.at(-1)?.id}:${alerts.length}`
      await insertBlock(client, { table: 'alerts', lines, dedupToken })
    },
  }
}

/** Rows of one query. */
const pageRows = 1_000

/** Returns no alert for a row of a version that this one does not know. */
function alertOfRow({ id, type, subject, time, data }: AlertRow): readonly AlertV1[] {
  const parsed = readAlert({ id, type, subject, time: new Date(parseTs(time) ?? 0).toISOString(), text: data })
  return parsed.kind === 'alert' ? [parsed.alert] : []
}

/** Reads alerts by their ids; those that ClickHouse does not have are left out. */
export async function readAlerts(client: ClickHouseClient, ids: Iterable<string>): Promise<Map<string, AlertV1>> {
  const wanted = [...new Set(ids)]
  const alerts = new Map<string, AlertV1>()
  for (let at = 0; at < wanted.length; at += pageRows) {
    const rows = await readAlertsById(client, wanted.slice(at, at + pageRows))
    for (const alert of rows.flatMap(alertOfRow)) alerts.set(alert.id, alert)
  }
  return alerts
}

/** Deliveries of this many days are read; older ones are given up anyway. */
const days = 5
/**
 * A row reaches ClickHouse within a second or two; a row that is not there after this time is rarely still on its way.
 */
const settleSeconds = 20

/** Reads the deliveries that are unfinished in ClickHouse, page by page, the oldest first. */
export async function* readUnfinishedJobs(client: ClickHouseClient): AsyncGenerator<readonly DeliveryJob[]> {
  let after: UnfinishedRow | undefined
  do {
    const rows = await readUnfinished(client, { days, settleSeconds, limit: pageRows, after })
    const alerts = await readAlerts(
      client,
      rows.map(({ alertId }) => alertId),
    )
    yield rows.flatMap(({ alertId, beganMs, ...row }) => {
      const alert = alerts.get(alertId)
      return alert === undefined ? [] : [{ ...row, alert, giveUpMs: beganMs + giveUpAfterMs }]
    })
    after = rows.length < pageRows ? undefined : rows.at(-1)
  } while (after !== undefined)
}
