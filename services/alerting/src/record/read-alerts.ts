import { type AlertRow, readAlertsById, readUnfinished, type UnfinishedRow } from '@weir/clickhouse/alert-queries.ts'
import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { type AlertV1, readAlert } from '@weir/contracts/alert.v1.ts'
import { parseTs } from '@weir/contracts/timestamp.ts'
import type { DeliveryJob } from '../deliver/delivery-job.ts'
import { giveUpAfterMs } from '../deliver/retry-schedule.ts'

/** Deliveries of this many days are read; older ones are given up anyway. */
const days = 5
/**
 * A row reaches ClickHouse within a second or two; a row that is not there after this time is rarely still on its way.
 */
const settleSeconds = 20
/** Rows of one query. */
const pageRows = 1_000

/** Returns no alert for a row of a version that this one does not know. */
function alertOf({ id, type, subject, time, data }: AlertRow): readonly AlertV1[] {
  const parsed = readAlert({ id, type, subject, time: new Date(parseTs(time) ?? 0).toISOString(), text: data })
  return parsed.kind === 'alert' ? [parsed.alert] : []
}

/** Reads alerts by their ids; those that ClickHouse does not have are left out. */
export async function readAlerts(client: ClickHouseClient, ids: readonly string[]): Promise<AlertV1[]> {
  const alerts: AlertV1[] = []
  for (let at = 0; at < ids.length; at += pageRows) {
    const rows = await readAlertsById(client, ids.slice(at, at + pageRows))
    alerts.push(...rows.flatMap(alertOf))
  }
  return alerts
}

/** Reads the deliveries that are unfinished in ClickHouse, page by page, the oldest first. */
export async function* readUnfinishedJobs(client: ClickHouseClient): AsyncGenerator<readonly DeliveryJob[]> {
  let after: UnfinishedRow | undefined
  do {
    const rows = await readUnfinished(client, { days, settleSeconds, limit: pageRows, after })
    const alerts = await readAlerts(client, [...new Set(rows.map(({ alert_id }) => alert_id))])
    const byId = new Map(alerts.map((alert) => [alert.id, alert]))
    yield rows.flatMap((row) => {
      const alert = byId.get(row.alert_id)
      const { endpoint, attempts, due_ms: dueMs, requested_ms: requestedMs, began_ms: beganMs } = row
      const giveUpMs = beganMs + giveUpAfterMs
      return alert === undefined ? [] : [{ alert, endpoint, attempts, dueMs, requestedMs, giveUpMs }]
    })
    after = rows.length < pageRows ? undefined : rows.at(-1)
  } while (after !== undefined)
}
