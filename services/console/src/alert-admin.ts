import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { findAlert, listAlerts, listFailedDeliveries } from '@weir/clickhouse/delivery-queries.ts'
import { encodeAlert } from '@weir/contracts/alert.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import type { Clock } from '@weir/core/clock.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import type { RecordSender } from '@weir/kafka/send-records.ts'
import type { AlertAdmin } from './ports.ts'

/** A row has at most a kilobyte or two; a broker takes a megabyte. */
const rowsPerSendMax = 300

/** Reads alerts in ClickHouse, and asks alerting through Kafka, which takes a request also while alerting is down. */
export function createAlertAdmin(client: ClickHouseClient, sender: RecordSender, clock: Clock): AlertAdmin {
  return {
    list: (filter, part) => listAlerts(client, filter, part),
    find: (id) => findAlert(client, id),
    listFailed: (filter, limit) => listFailedDeliveries(client, filter, limit),
    async request(rows) {
      const records = rows.map((row) => ({ key: row.alert_id, value: JSON.stringify(row) }))
      for (let at = 0; at < records.length; at += rowsPerSendMax) {
        await sender.send(topics.deliveries, records.slice(at, at + rowsPerSendMax))
      }
      return rows.length
    },
    async sendTest(endpoint) {
      const id = uuidv7(clock.nowMs())
      const time = new Date(clock.nowMs()).toISOString()
      const alert = { id, type: 'weir.endpoint.test', subject: endpoint, time, data: { endpoint } } as const
      await sender.send(topics.alerts, [encodeAlert(alert)])
      return id
    },
  }
}
