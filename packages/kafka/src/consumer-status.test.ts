import { expect, test } from 'vitest'
import { Assignment } from './consumer-status.ts'

test('A member of the group that Kafka no longer hears says why it has no connection, until it has one', () => {
  const isSilentAtOnce = -1
  const assignment = new Assignment(isSilentAtOnce)
  assignment.join({ topic: [0] }, 'member')
  const silence = /^no response to a heartbeat for \d+ ms/
  const retried = 'Failed to connect to seed broker, trying another broker from the list: '
  for (const [message, why] of [
    ['Connection error: connect ECONNREFUSED 127.0.0.1:9092', ': connect ECONNREFUSED 127.0.0.1:9092'],
    [`${retried}Connection error: its certificate: see WEIR_KAFKA_TLS_CA`, ': its certificate: see WEIR_KAFKA_TLS_CA'],
    [`${retried}Kafka refuses the user: see WEIR_X`, ': Kafka refuses the user: see WEIR_X'],
    ['Response Heartbeat(key: 12, version: 3)', ': Kafka refuses the user: see WEIR_X'],
  ] as const) {
    assignment.trouble(message)
    expect(assignment.status().waitingFor.replace(silence, '')).toBe(why)
  }
  assignment.progress()
  expect(assignment.status().waitingFor.replace(silence, '')).toBe('')
})
