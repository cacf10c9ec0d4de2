// Reads Weir's alerts with kafkajs: npm install kafkajs, then BROKERS=host:port node consume.mjs
import { Kafka } from 'kafkajs'

const kafka = new Kafka({ clientId: 'alert-example', brokers: (process.env.BROKERS ?? '127.0.0.1:9092').split(',') })
// A group of its own for each system that wants all alerts.
const consumer = kafka.consumer({ groupId: 'alert-example-kafkajs' })
// An alert may come again, under the same id. In earnest this is a table with the id as its key.
const handled = new Set()

await consumer.connect()
await consumer.subscribe({ topics: ['weir.alerts.v1'], fromBeginning: true })
await consumer.run({
  // The offset is committed after this: killed in here, the alert comes again.
  eachMessage: async ({ message }) => {
    const header = (name) => message.headers?.[name]?.toString()
    const id = header('ce_id')
    if (header('ce_source') !== '/weir' || id === undefined || handled.has(id)) return
    const data = JSON.parse(message.value.toString())
    const alert = { id, type: header('ce_type'), subject: header('ce_subject'), data }
    process.stdout.write(`${JSON.stringify(alert)}\n`)
    handled.add(id)
  },
})
