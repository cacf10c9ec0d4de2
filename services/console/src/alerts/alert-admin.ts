import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { encodeAlert } from '@weir/contracts/alert.v1.ts'
import type { DeliveryV1 } from '@weir/contracts/delivery.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import type { Clock } from '@weir/core/clock.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import type { RecordSender } from '@weir/kafka/send-records.ts'
import {
  type AlertFilter,
  type AlertReach,
  findAlert,
  type ListedAlert,
  listAlerts,
  listFailedDeliveries,
} from './delivery-queries.ts'

/** A row has at most a kilobyte or two; a broker takes a megabyte. */
const rowsPerSendMax = 300

/**
 * Reads alerts in ClickHouse, and asks alerting through Kafka, which takes a request also while alerting is down. Each
 * method rejects when its server does not answer.
 */
export function createAlertAdmin(client: ClickHouseClient, sender: RecordSender, clock: Clock) {
  return {
    list: (within: AlertReach, filter: AlertFilter, part: Parameters<typeof listAlerts>[3]): Promise<ListedAlert[]> =>
      listAlerts(client, within, filter, part),
    find: (within: AlertReach, id: string) => findAlert(client, within, id),
    listFailed: (filter: AlertFilter, limit: number) => listFailedDeliveries(client, filter, limit),
    /** Asks alerting to deliver again; resolves to how many deliveries were asked for. Safe to repeat. */
    async request(rows: readonly DeliveryV1[]): Promise<number> {
      const records = rows.map((row) => ({ key: row.alert_id, value: JSON.stringify(row) }))
      for (let at = 0; at < records.length; at += rowsPerSendMax) {
        await sender.send(topics.deliveries, records.slice(at, at + rowsPerSendMax))
      }
      return rows.length
    },
    /** Sends an endpoint, or the contact of a subject by it, a test; resolves to the alert's id. */
    async sendTest(endpoint: string, subject = endpoint, delayMs = 0): Promise<string> {
      const id = uuidv7(clock.nowMs())
      const time = new Date(clock.nowMs() + delayMs).toISOString()
      const alert = { id, type: 'weir.endpoint.test', subject, time, data: { endpoint } } as const
      await sender.send(topics.alerts, [encodeAlert(alert)])
      return id
    },
  }
}
