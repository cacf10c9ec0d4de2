import { encodeAlert } from '@weir/contracts/alert.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import type { RecordSender } from '@weir/kafka/send-records.ts'
import type { AlertTopic } from './ports.ts'

/** The public feed of alerts: CloudEvents in binary mode, keyed by subject. */
export function createAlertTopic(sender: RecordSender): AlertTopic {
  return {
    async publish(alerts) {
      await sender.send(topics.alerts, alerts.map(encodeAlert))
    },
  }
}
