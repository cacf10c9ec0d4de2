import { connect, createServer, type Server, type Socket } from 'node:net'

/** A client asks which versions a server has before it does anything else, and logs in with this request. */
const apiVersions = 18
const saslHandshake = 17

/** Length and key of a request. */
const headBytes = 6
/** Longer than any question for versions: what is longer before that is not Kafka's protocol. */
const questionBytesMax = 1_024
/** Two sockets each. Only the first connection of a client comes this way, and none of Weir's own services. */
const connectionsMax = 200
/** A client shows with its second request whether it logs in; one that takes longer is disconnected. */
const choiceMsMax = 10_000

/**
 * Chooses the listener for a client as soon as its requests show it; `at` is the request in `received` that shows it.
 */
function chosen(received: Buffer): { readonly at: number; readonly isLogin: boolean } | 'not yet' | 'refused' {
  for (let at = 0; ; ) {
    if (received.length < at + headBytes) return 'not yet'
    const key = received.readInt16BE(at + 4)
    if (key !== apiVersions) return { at, isLogin: key === saslHandshake }
    const length = received.readInt32BE(at)
    if (length < 0 || at + length > questionBytesMax) return 'refused'
    at += 4 + length
  }
}

/** Both ends live and die together. */
function join(client: Socket, port: number): Socket {
  const broker = connect({ port, host: '127.0.0.1' })
  broker.pipe(client)
  broker.once('error', () => client.destroy())
  broker.once('close', () => client.destroy())
  client.once('close', () => broker.destroy())
  return broker
}

interface Listeners {
  readonly open: number
  readonly secured: number
}

function serve(client: Socket, ports: Listeners, choiceMs: number): void {
  const timer = setTimeout(() => client.destroy(), choiceMs)
  client.once('close', () => clearTimeout(timer))
  client.on('error', () => client.destroy())
  // Other users can take all connections of the open listener: a client that logs in does not need it.
  let broker = join(client, ports.secured)
  let received = Buffer.alloc(0)
  client.on('data', function choose(chunk: Buffer) {
    received = Buffer.concat([received, chunk])
    const choice = chosen(received)
    if (choice === 'refused') return client.destroy()
    if (choice === 'not yet') return broker.write(chunk)
    clearTimeout(timer)
    client.off('data', choose)
    if (choice.isLogin) broker.write(chunk)
    else {
      // Requests without an answer are sent again.
      const from = broker.bytesRead === 0 ? 0 : choice.at
      broker.removeAllListeners().unpipe().destroy()
      broker = join(client, ports.open)
      broker.write(received.subarray(from))
    }
    client.pipe(broker)
  })
}

/**
 * Opens one address for two listeners of Kafka: clients that log in reach the one that asks for a password, all others
 * the open one. Only the first connection of a client comes here.
 */
export function openLoginRelay(port: number, ports: Listeners, choiceMs = choiceMsMax): Promise<Server> {
  const server = createServer((client) => serve(client, ports, choiceMs))
  server.maxConnections = connectionsMax
  return new Promise((resolve, reject) => {
    server.on('error', reject) // stays: one connection that cannot be accepted must not end the launcher
    server.listen(port, '127.0.0.1', () => resolve(server))
  })
}
