import { type AlertRow, readAlertsById, readUnfinished, type UnfinishedRow } from '@weir/clickhouse/alert-queries.ts'
import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { type AlertV1, readAlert } from '@weir/contracts/alert.v1.ts'
import { parseTs } from '@weir/contracts/timestamp.ts'
import type { DeliveryJob } from '../deliver/delivery-job.ts'
import { giveUpAfterMs } from '../deliver/retry-schedule.ts'

/** Deliveries that are looked at: one that is older is given up anyway. */
const days = 5
/** A row is in ClickHouse a second or two after it was written; what is not there by now is mostly not on its way. */
const settleSeconds = 20
/** Of one sweep; the next goes on where this ends, once these are queued. */
const unfinishedMax = 10_000

/** Undefined for a row of a version that this one does not know. */
function alertOf({ id, type, subject, time, data }: AlertRow): AlertV1 | undefined {
  const parsed = readAlert({ id, type, subject, time: new Date(parseTs(time) ?? 0).toISOString(), text: data })
  return parsed.kind === 'alert' ? parsed.alert : undefined
}

function jobOf(row: UnfinishedRow): DeliveryJob[] {
  const alert = alertOf(row)
  const { endpoint, attempts, due_ms: dueMs, requested_ms: requestedMs, began_ms: beganMs } = row
  return alert === undefined
    ? []
    : [{ alert, endpoint, attempts, dueMs, requestedMs, giveUpMs: beganMs + giveUpAfterMs }]
}

export const readAlerts = async (client: ClickHouseClient, ids: readonly string[]): Promise<AlertV1[]> =>
  (await readAlertsById(client, ids)).flatMap((row) => alertOf(row) ?? [])

export const readUnfinishedJobs = async (client: ClickHouseClient): Promise<DeliveryJob[]> =>
  (await readUnfinished(client, { days, settleSeconds, limit: unfinishedMax })).flatMap(jobOf)
