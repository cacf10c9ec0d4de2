import { pbkdf2Sync, randomBytes } from 'node:crypto'
import type { Cluster } from '@weir/kafka/wire/raw-cluster.ts'
import { rawRequest } from '@weir/kafka/wire/raw-requests.ts'

/** The number that Kafka gives each mechanism, and its digest. */
const mechanisms = [
  { number: 1, digest: 'sha256', bytes: 32 },
  { number: 2, digest: 'sha512', bytes: 64 },
] as const
/** Kafka's least. */
const iterations = 4_096

/** A text or bytes in Kafka's compact encoding: length + 1 as one byte, which is enough here. */
const compact = (value: string | Buffer) => {
  const bytes = Buffer.from(value)
  if (bytes.length > 126) throw new Error('too long for this encoder')
  return Buffer.concat([Buffer.from([bytes.length + 1]), bytes])
}

function encodeUpsert(user: string, password: string, { number, digest, bytes }: (typeof mechanisms)[number]): Buffer {
  const salt = randomBytes(16)
  const salted = pbkdf2Sync(password, salt, iterations, bytes, digest)
  const how = Buffer.from([number, 0, 0, iterations >> 8, iterations & 0xff])
  // Tags of the header, no deletion, one upsert with its tags, no tags.
  const [before, after] = [Buffer.from([0, 1, 2]), Buffer.from([0, 0])]
  return Buffer.concat([before, compact(user), how, compact(salt), compact(salted), after])
}

/** Gives a user a password for SCRAM-SHA-256 and SCRAM-SHA-512, by AlterUserScramCredentials requests, which kafkajs does not know. */
export async function alterScramPassword(cluster: Cluster, user: string, password: string): Promise<void> {
  await cluster.refreshMetadata()
  const broker = await cluster.findBroker({ nodeId: '1' }) // the only one; it passes the request on to the controller
  // Kafka takes no two changes of one user in one request.
  for (const mechanism of mechanisms) {
    const body = encodeUpsert(user, password, mechanism)
    const api = { apiKey: 51, apiVersion: 0, apiName: 'AlterUserScramCredentials' }
    const request = rawRequest(api, body, (read) => {
      read.skip(1 + 4 + 1 + 1 + user.length) // tags of the header, throttle time, one result for the user: name
      return read.int16()
    })
    const code = await broker.connectionPool.send(request)
    if (code !== 0) throw new Error(`Kafka refuses a password for ${user} with code ${code}`)
  }
}
