import { expect, test } from 'vitest'
import { kafkaFrom, localKafka } from './find-servers.ts'

test("what the environment says of another Kafka's TLS and logins is not used for that of a `weir up`", () => {
  const environment = {
    WEIR_KAFKA_TLS: 'on',
    WEIR_KAFKA_SASL_MECHANISM: 'PLAIN',
    WEIR_KAFKA_SASL_USERNAME: 'another',
    WEIR_KAFKA_SASL_PASSWORD_FILE: '/not/there',
  }
  const login = { address: '127.0.0.1:1', username: 'weir', password: 'p' }
  const { brokers, security } = kafkaFrom({ ...environment, ...localKafka(login) }, 'test')
  expect([brokers, security?.tls]).toEqual([['127.0.0.1:1'], undefined])
  expect(security?.sasl).toMatchObject({ mechanism: 'SCRAM-SHA-256', username: 'weir', password: { text: 'p' } })
})
