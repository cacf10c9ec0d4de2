import type { RecordSender } from '@weir/kafka/send-records.ts'
import type { DeadLetterSink } from './ports.ts'

/** A reason longer than this is cut: it is for people, and ClickHouse quotes the whole row. */
const reasonLengthMax = 500

/** Keeps what cannot be read in a topic of its own: the original bytes, and where they came from in the headers. */
export function createDeadLetterSink(sender: RecordSender, topic: string): DeadLetterSink {
  const source = topic.replace(/\.dlq$/, '')
  return {
    async send(partition, letters) {
      await sender.send(
        topic,
        letters.map(({ message, reason }) => ({
          key: `${source}:${partition}:${message.offset}`,
          value: message.value,
          headers: {
            'x-error-topic': source,
            'x-error-partition': String(partition),
            'x-error-offset': message.offset,
            'x-error-reason': reason.slice(0, reasonLengthMax),
          },
        })),
      )
    },
  }
}
