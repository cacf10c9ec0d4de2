import { connect } from 'node:net'

/** The few requests of Kafka's protocol that the launcher makes itself, by key and version. */
const requests = {
  metadata: [3, 4],
  saslHandshake: [17, 1],
  createAcls: [30, 1],
  saslAuthenticate: [36, 0],
  alterScramCredentials: [51, 0],
} as const

/** Encodes one byte. */
export const int8 = (value: number) => Buffer.of(value)
const int16 = (value: number) => Buffer.of(value >> 8, value)
/** Encodes four bytes, the highest first. */
export const int32 = (value: number) => Buffer.of(value >> 24, value >> 16, value >> 8, value)
/** Encodes bytes behind their length. */
export const bytes = (value: Buffer | string) => Buffer.concat([int32(value.length), Buffer.from(value)])
/** Encodes a text behind its length. */
export const string = (value: string) => Buffer.concat([int16(value.length), Buffer.from(value)])
/** Encodes as newer requests do; for up to 126 bytes, which is all that is needed. */
export const compact = (value: Buffer | string) => Buffer.concat([int8(value.length + 1), Buffer.from(value)])

/** Sends one request and resolves to the body of its answer. */
export type Ask = (request: keyof typeof requests, ...body: Buffer[]) => Promise<Buffer>

/**
 * Runs `use` on a connection to the Kafka on this loopback port. `ask` sends one request and resolves to its answer
 * behind the correlation id. Resolves to false when nobody listens, the connection ends early, or a second has passed.
 */
export function withKafka(port: number, use: (ask: Ask) => Promise<boolean>): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' })
    let received = Buffer.alloc(0)
    let answer: (body: Buffer) => void = () => undefined
    const finish = (result: boolean) => {
      clearTimeout(deadline)
      socket.destroy()
      resolve(result)
    }
    const deadline = setTimeout(finish, 1_000, false) // `ready` asks three times, and promises 3 s
    const ask: Ask = (request, ...body) => {
      const [key, version] = requests[request]
      const framed = bytes(Buffer.concat([int16(key), int16(version), int32(1), string('weir-up'), ...body]))
      return new Promise((resolveAnswer) => {
        answer = resolveAnswer
        socket.write(framed)
      })
    }
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
      if (received.length < 4 || received.length < 4 + received.readInt32BE(0)) return
      const body = received.subarray(8)
      received = Buffer.alloc(0)
      answer(body)
    })
    socket.once('connect', () => use(ask).then(finish, () => finish(false)))
    socket.once('error', () => finish(false))
    socket.once('end', () => finish(false))
  })
}

/**
 * Whether the Kafka on this loopback port can serve: it lists a broker only once that broker has registered with the
 * controller and is no longer fenced. A port that merely accepts connections is open seconds before that.
 */
export const servesClients = (port: number): Promise<boolean> =>
  withKafka(port, async (ask) => {
    // For no topic, and none is created.
    const answer = await ask('metadata', int32(0), int8(0))
    return answer.readInt32BE(4) > 0 // the number of brokers, behind the throttle time
  })
