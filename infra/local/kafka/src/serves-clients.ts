import { connect } from 'node:net'

/** A Metadata request, version 4, for no topic: api 3, correlation 1, client `weir-ready`, empty topic list, no creation. */
function metadataRequest(): Buffer {
  const clientId = 'weir-ready'
  const body = Buffer.alloc(8 + 2 + clientId.length + 4 + 1)
  body.writeInt16BE(3, 0)
  body.writeInt16BE(4, 2)
  body.writeInt32BE(1, 4)
  body.writeInt16BE(clientId.length, 8)
  body.write(clientId, 10, 'latin1')
  const framed = Buffer.alloc(4 + body.length)
  framed.writeInt32BE(body.length, 0)
  body.copy(framed, 4)
  return framed
}

/** Length of the frame, correlation id and throttle time stand before the list of brokers. */
const brokersAt = 4 + 4 + 4

/**
 * Whether the Kafka on this loopback port can serve: it lists a broker only once that broker has registered with the controller and
 * is no longer fenced. A port that merely accepts connections is open seconds before that.
 */
export function servesClients(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' })
    let received = Buffer.alloc(0)
    const finish = (answer: boolean) => {
      clearTimeout(deadline)
      socket.destroy()
      resolve(answer)
    }
    const deadline = setTimeout(finish, 1_000, false) // the port's promise: a second at most
    socket.once('connect', () => socket.write(metadataRequest()))
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
      if (received.length >= brokersAt + 4) finish(received.readInt32BE(brokersAt) > 0)
    })
    socket.once('error', () => finish(false))
    socket.once('end', () => finish(false))
  })
}
