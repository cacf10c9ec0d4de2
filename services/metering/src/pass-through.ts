import type { DeadLetter, DecisionMessage } from './ports.ts'

const openBrace = 0x7b
const closeBrace = 0x7d
const lineBreak = 0x0a

/**
 * Whether these bytes can stand as one line of JSONEachRow without being parsed: they look like one object and cannot
 * break out of their line. Everything else is ClickHouse's to judge.
 */
function isOneObjectLine(value: Buffer | null): value is Buffer {
  return (
    value !== null &&
    value.length > 2 &&
    value[0] === openBrace &&
    value[value.length - 1] === closeBrace &&
    !value.includes(lineBreak)
  )
}

export interface PassedThrough {
  /** One line a record, with the record's place in Kafka spliced in. */
  readonly lines: Buffer
  readonly rows: number
  readonly refused: readonly DeadLetter[]
}

/** The bytes of a partition's records as an insert, without parsing them. */
export function passThrough(partition: number, messages: readonly DecisionMessage[]): PassedThrough {
  const pieces: Buffer[] = []
  const refused: DeadLetter[] = []
  for (const message of messages) {
    const { value, offset } = message
    if (isOneObjectLine(value)) {
      pieces.push(value.subarray(0, -1), Buffer.from(`,"partition":${partition},"offset":${offset}}\n`, 'latin1'))
    } else {
      refused.push({ message, reason: value === null ? 'no value' : 'not one JSON object in one line' })
    }
  }
  return { lines: Buffer.concat(pieces), rows: pieces.length / 2, refused }
}
