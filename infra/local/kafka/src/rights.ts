import { pbkdf2Sync, randomBytes } from 'node:crypto'
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
const int8 = (value: number) => Buffer.of(value)
const int16 = (value: number) => Buffer.of(value >> 8, value)
/** Encodes four bytes, the highest first. */
const int32 = (value: number) => Buffer.of(value >> 24, value >> 16, value >> 8, value)
/** Encodes bytes behind their length. */
const bytes = (value: Buffer | string) => Buffer.concat([int32(value.length), Buffer.from(value)])
/** Encodes a text behind its length. */
const string = (value: string) => Buffer.concat([int16(value.length), Buffer.from(value)])
/** Encodes as newer requests do; for up to 126 bytes, which is all that is needed. */
const compact = (value: Buffer | string) => Buffer.concat([int8(value.length + 1), Buffer.from(value)])

/** Sends one request and resolves to the body of its answer. */
type Ask = (request: keyof typeof requests, ...body: Buffer[]) => Promise<Buffer>

/**
 * Runs `use` on a connection to the Kafka on this loopback port. `ask` sends one request and resolves to its answer
 * behind the correlation id. Resolves to false when nothing listens, the connection ends early, or a second has passed.
 */
function withKafka(port: number, use: (ask: Ask) => Promise<boolean>): Promise<boolean> {
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
 * Resolves to whether the Kafka on this loopback port can serve: it lists a broker only once that broker has registered
 * with the controller and is no longer fenced. A port that merely accepts connections is open seconds before that.
 */
export const servesClients = (port: number): Promise<boolean> =>
  withKafka(port, async (ask) => {
    // For no topic, and none is created.
    const answer = await ask('metadata', int32(0), int8(0))
    return answer.readInt32BE(4) > 0 // the number of brokers, behind the throttle time
  })

/** The user of Weir's own services, who may do everything. */
export const username = 'weir'

/** Kafka's own numbers for what an ACL names. */
const topic = 2
const group = 3
const literal = 3
const prefixed = 4
const read = 3
const deny = 2
const allow = 3

/** A member of one of these takes partitions from Weir, and may commit offsets of records that Weir has not handled. */
const ownGroups = ['metering', 'metering-outcomes', 'alerting', 'dispatcher', 'redelivery', 'alert-log']

/** The rights of callers without a password. Reading a topic or a group includes describing it. */
const acls = [
  [topic, '*', literal, allow],
  [topic, '__', prefixed, deny],
  [group, '*', literal, allow],
  ...ownGroups.map((name) => [group, `weir-${name}`, literal, deny] as const),
] as const

function encodeAcls(): Buffer {
  const encoded = acls.map(([type, name, pattern, permission]) =>
    Buffer.concat([
      int8(type),
      string(name),
      int8(pattern),
      string('User:ANONYMOUS'),
      string('*'),
      int8(read),
      int8(permission),
    ]),
  )
  return Buffer.concat([int32(acls.length), ...encoded])
}

/** The number that Kafka gives each mechanism, and its digest. */
const mechanisms = {
  'SCRAM-SHA-256': { number: 1, digest: 'sha256', bytes: 32 },
  'SCRAM-SHA-512': { number: 2, digest: 'sha512', bytes: 64 },
} as const
/** Kafka's least. */
const iterations = 4_096

/** Encodes the body of an AlterUserScramCredentials request that gives a user a password. */
export function encodeScramPassword(
  user: string,
  password: string,
  mechanism: keyof typeof mechanisms,
  salt: Buffer = randomBytes(16),
): Buffer {
  const { number, digest, bytes: length } = mechanisms[mechanism]
  const salted = pbkdf2Sync(password, salt, iterations, length, digest)
  // Tagged fields, no deletion, one credential, tagged fields of the credential and of the request.
  return Buffer.concat([
    Buffer.of(0, 1, 2),
    compact(user),
    int8(number),
    int32(iterations),
    compact(salt),
    compact(salted),
    Buffer.of(0, 0),
  ])
}

/** Puts rights and password in place. PLAIN knows the password from Kafka's own settings. */
const grant = (port: number, password: string, salt: Buffer): Promise<boolean> =>
  withKafka(port, async (ask) => {
    await ask('saslHandshake', string('PLAIN'))
    const login = await ask('saslAuthenticate', bytes(`\0${username}\0${password}`))
    if (login.readInt16BE(0) !== 0) return false
    const created = await ask('createAcls', encodeAcls())
    // Behind throttle time and count: a code each, and a message, which is empty up to the first that failed.
    if (acls.some((_, index) => created.readInt16BE(8 + 4 * index) !== 0)) return false
    const request = encodeScramPassword(username, password, 'SCRAM-SHA-256', salt)
    const changed = await ask('alterScramCredentials', request)
    return changed.readInt16BE(1 + 4 + 1 + compact(username).length) === 0
  })

/** Resolves to whether the broker knows this password: it answers a login with the salt. */
const knows = (port: number, salt: Buffer): Promise<boolean> =>
  withKafka(port, async (ask) => {
    await ask('saslHandshake', string('SCRAM-SHA-256'))
    const answer = await ask('saslAuthenticate', bytes(`n,,n=${username},r=weir`))
    return answer.includes(`s=${salt.toString('base64')},`)
  })

/** Sets the rights of callers in a running Kafka. Safe to repeat; resolves to false where it has to be repeated. */
export async function grantRights(port: number, password: string): Promise<boolean> {
  const salt = randomBytes(16)
  return (await grant(port, password, salt)) && knows(port, salt)
}
