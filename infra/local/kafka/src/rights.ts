import { pbkdf2Sync, randomBytes } from 'node:crypto'
import { bytes, compact, int8, int32, string, withKafka } from './wire.ts'

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

/** What callers without a password may do. Reading a topic or a group includes describing it. */
const acls = [
  [topic, '*', literal, allow],
  [topic, '__', prefixed, deny],
  [group, '*', literal, allow],
  ...ownGroups.map((name) => [group, `weir-${name}`, literal, deny] as const),
] as const

function encodeAcls(): Buffer {
  const encoded = acls.map(([type, name, pattern, permission]) =>
    Buffer.concat([
      ...[int8(type), string(name), int8(pattern), string('User:ANONYMOUS'), string('*')],
      ...[int8(read), int8(permission)],
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

/** The body of an AlterUserScramCredentials request that gives a user a password. */
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
    ...[compact(user), int8(number), int32(iterations), compact(salt), compact(salted)],
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

/** Whether the broker knows this very password: it answers a login with the salt. */
const knows = (port: number, salt: Buffer): Promise<boolean> =>
  withKafka(port, async (ask) => {
    await ask('saslHandshake', string('SCRAM-SHA-256'))
    const answer = await ask('saslAuthenticate', bytes(`n,,n=${username},r=weir`))
    return answer.includes(`s=${salt.toString('base64')},`)
  })

/** Puts in place what the callers of a running Kafka may do. Safe to repeat; false where it has to be repeated. */
export async function grantRights(port: number, password: string): Promise<boolean> {
  const salt = randomBytes(16)
  return (await grant(port, password, salt)) && knows(port, salt)
}
