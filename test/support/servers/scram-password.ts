import type { Cluster } from '@weir/kafka/wire/raw-cluster.ts'
import { rawRequest } from '@weir/kafka/wire/raw-requests.ts'
import { encodeScramPassword } from '@weir/local-kafka/rights.ts'

/**
 * Gives a user a password for SCRAM-SHA-256 and SCRAM-SHA-512, by AlterUserScramCredentials requests, which kafkajs
 * does not know.
 */
export async function alterScramPassword(cluster: Cluster, user: string, password: string): Promise<void> {
  await cluster.refreshMetadata()
  const broker = await cluster.findBroker({ nodeId: '1' }) // the only one; it passes the request on to the controller
  // Kafka takes no two changes of one user in one request.
  for (const mechanism of ['SCRAM-SHA-256', 'SCRAM-SHA-512'] as const) {
    const body = encodeScramPassword(user, password, mechanism)
    const api = { apiKey: 51, apiVersion: 0, apiName: 'AlterUserScramCredentials' }
    const request = rawRequest(api, body, (read) => {
      read.skip(1 + 4 + 1 + 1 + user.length) // tags of the header, throttle time, one result for the user: name
      return read.int16()
    })
    const code = await broker.connectionPool.send(request)
    if (code !== 0) throw new Error(`Kafka refuses a password for ${user} with code ${code}`)
  }
}
