import type { RecordSender } from './send-records.ts'

/** A record that could not be read, with where it stood. */
interface DeadLetter {
  readonly message: { readonly position: number; readonly value: Buffer | null }
  readonly reason: string
  /** The record's own, stored in addition to ours. */
  readonly headers?: Readonly<Record<string, string>>
}

/** A reason longer than this is cut: it is for people, and the letter has the whole record. */
const reasonLengthMax = 500
/** Of one request: a single record may be larger, and then goes alone. */
const requestBytesMax = 500_000
/** Key, headers and frame of a letter, its reason aside. */
const frameBytes = 300

const bytesOf = ({ message, reason, headers = {} }: DeadLetter): number => {
  const own = Object.entries(headers).reduce((sum, [name, value]) => sum + name.length + value.length * 3, 0)
  return frameBytes + Math.min(reason.length, reasonLengthMax) * 3 + own + (message.value?.length ?? 0)
}

/** Cuts the letters into requests. */
function* portions(letters: readonly DeadLetter[]): Generator<readonly DeadLetter[]> {
  let portion: DeadLetter[] = []
  let bytes = 0
  for (const letter of letters) {
    const size = bytesOf(letter)
    if (portion.length > 0 && bytes + size > requestBytesMax) {
      yield portion
      portion = []
      bytes = 0
    }
    portion.push(letter)
    bytes += size
  }
  if (portion.length > 0) yield portion
}

/** Keeps what cannot be read in a topic of its own: the original bytes, and where they came from in the headers. */
export function createDeadLetterSink(sender: RecordSender, topic: string) {
  const source = topic.replace(/\.dlq$/, '')
  return {
    /** Resolves when all of them are in Kafka. Repeated, they are there twice, under the same keys. */
    async send(partition: number, letters: readonly DeadLetter[]): Promise<void> {
      for (const portion of portions(letters)) {
        await sender.send(
          topic,
          portion.map(({ message, reason, headers }) => ({
            key: `${source}:${partition}:${message.position}`,
            value: message.value,
            headers: {
              ...headers,
              'x-error-topic': source,
              'x-error-partition': String(partition),
              'x-error-offset': String(message.position),
              'x-error-reason': reason.slice(0, reasonLengthMax),
            },
          })),
        )
      }
    },
  }
}
