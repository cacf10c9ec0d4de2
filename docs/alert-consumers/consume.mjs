// Reads Weir's alerts with kafkajs: npm install kafkajs, then BROKERS=host:port node consume.mjs
// Where Kafka asks for a password, KAFKA_USERNAME and KAFKA_PASSWORD too, and in KAFKA_CA the file of an authority that Node does not know.
import { readFileSync } from 'node:fs'
import { Kafka, logLevel } from 'kafkajs'

const { BROKERS = '127.0.0.1:9092', KAFKA_CA, KAFKA_USERNAME: username, KAFKA_PASSWORD: password } = process.env
const brokers = BROKERS.split(',')
const ssl = KAFKA_CA === undefined ? true : { ca: readFileSync(KAFKA_CA) }
const login = username === undefined ? {} : { ssl, sasl: { mechanism: 'scram-sha-512', username, password } }
// It writes its log to stdout, where the alerts go.
const kafka = new Kafka({ clientId: 'alert-example', brokers, ...login, logLevel: logLevel.ERROR })
// A group of its own for each system that wants all alerts.
const consumer = kafka.consumer({ groupId: 'alert-example-kafkajs' })
// An alert may come again, under the same id. In earnest this is a table with the id as its key.
const handled = new Set()

/** Undefined for what is no alert: the topic is public, and others may have written there. */
function readAlert({ headers, value }) {
  const header = (name) => headers?.[name]?.toString()
  try {
    if (header('ce_source') !== '/weir' || header('ce_id') === undefined) return undefined
    const [id, type, subject] = [header('ce_id'), header('ce_type'), header('ce_subject')]
    return { id, type, subject, data: JSON.parse(value.toString()) }
  } catch (error) {
    process.stderr.write(`passed over: ${error}\n`)
    return undefined
  }
}

await consumer.connect()
await consumer.subscribe({ topics: ['weir.alerts.v1'], fromBeginning: true })
await consumer.run({
  // The offset is committed after this: killed in here, the alert comes again.
  eachMessage: async ({ message }) => {
    const alert = readAlert(message)
    if (alert === undefined || handled.has(alert.id)) return
    process.stdout.write(`${JSON.stringify(alert)}\n`)
    handled.add(alert.id)
  },
})
