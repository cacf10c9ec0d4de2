import type { KafkaSecurity } from '../security.ts'

/*
 * Kafka says by a number that a right is missing. kafkajs makes a general sentence of it, and drops the number where it
 * looks for a group's coordinator. Here the error says which user lacks which right on what.
 */

/** What the rights are on, by Kafka's numbers for a missing one. */
const resources: Readonly<Record<number, string>> = { 29: 'Topic', 30: 'Group', 31: 'Cluster', 53: 'TransactionalId' }

/** Answered for topics too, when a group's offsets are committed. */
const groupDenied = 30

/** The right that a request needs. */
const operations: Readonly<Record<string, string>> = {
  Produce: 'Write',
  Fetch: 'Read',
  OffsetCommit: 'Read',
  JoinGroup: 'Read',
  SyncGroup: 'Read',
  Heartbeat: 'Read',
  LeaveGroup: 'Read',
  CreateTopics: 'Create',
  DescribeConfigs: 'DescribeConfigs',
}

/**
 * Whose client it is, and the right it cannot do without: Read and Write include Describe, which is asked for first.
 */
export interface Client {
  readonly security?: KafkaSecurity | undefined
  readonly purpose?: 'Read' | 'Write' | undefined
}

/** The variable that names who we are to Kafka. */
function identityOf(security: KafkaSecurity | undefined): string {
  if (security?.sasl?.mechanism === 'OAUTHBEARER') return 'WEIR_KAFKA_OAUTH_CLIENT_ID'
  return security?.sasl === undefined && security?.tls?.cert ? 'WEIR_KAFKA_TLS_CERT' : 'WEIR_KAFKA_SASL_USERNAME'
}

/** Undefined for a number that is about no right. */
export function missingRight(client: Client, apiName: string, code: number, name: string): string | undefined {
  const resource = resources[code]
  const operation = operations[apiName] ?? client.purpose ?? 'Describe'
  if (resource === undefined) return undefined
  const on = resource === 'Cluster' ? 'kafka-cluster' : name
  return `Kafka: the user of ${identityOf(client.security)} lacks ${operation} on ${resource} ${on}`
}

/** The first such number in an answer, with the name of what it is about. */
function findDenial(answer: object, name = ''): { readonly code: number; readonly name: string } | undefined {
  const fields = Object.entries(answer)
  const named = fields.find(([key, value]) => /^(topic|topicName|resourceName)$/.test(key) && typeof value === 'string')
  const here = named === undefined ? name : String(named[1])
  const denied = fields.find(([key, value]) => /errorCode$/i.test(key) && value in resources)
  if (denied !== undefined) return { code: Number(denied[1]), name: Number(denied[1]) === groupDenied ? '' : here }
  for (const [key, value] of fields) {
    if (key === 'messages' || typeof value !== 'object' || value === null) continue
    const found = findDenial(value, here)
    if (found !== undefined) return found
  }
  return undefined
}

interface Protocol {
  readonly request: { readonly apiName: string }
  readonly response: { decode(raw: Buffer): Promise<object> }
}

interface Connection {
  readonly socketFactory: Client
  send(protocol: Protocol): Promise<unknown>
}

/** The sentence that is said, by error: also those that kafkajs would swallow. */
const denials = new WeakSet<object>()

/** Errors of a missing right say so. */
export function nameTopics(connection: { readonly prototype: Connection }): void {
  const { send } = connection.prototype
  connection.prototype.send = async function (protocol) {
    const { request, response } = protocol
    let answer: object = {}
    const decode = async (raw: Buffer) => {
      answer = await response.decode(raw)
      return answer
    }
    try {
      return await send.call(this, { ...protocol, response: { ...response, decode } })
    } catch (error) {
      if (error instanceof Error && /AUTHORIZATION_FAILED$|^KafkaJSAggregateError$/.test(typeOrName(error))) {
        const found = findDenial(answer)
        const right = found && missingRight(this.socketFactory, request.apiName, found.code, found.name)
        if (right !== undefined) {
          error.message = right
          denials.add(error)
        }
      } else if (error instanceof Error && request.apiName === 'SaslHandshake') {
        error.message = `Kafka takes no such login here (${error.message}): see WEIR_KAFKA_SASL_MECHANISM`
      }
      throw error
    }
  }
}

const typeOrName = (error: Error) => ('type' in error ? String(error.type) : error.name)

type OfGroup = (request: { readonly groupId?: string }) => Promise<unknown>

/** An answer about a group does not name it. */
export function nameGroups(broker: { readonly prototype: object }): void {
  for (const name of ['findGroupCoordinator', 'joinGroup', 'syncGroup', 'heartbeat', 'offsetCommit', 'offsetFetch']) {
    const ask: OfGroup = Reflect.get(broker.prototype, name)
    Reflect.set(broker.prototype, name, async function (this: object, request: Parameters<OfGroup>[0]) {
      try {
        return await ask.call(this, request)
      } catch (error) {
        if (error instanceof Error && denials.has(error) && /on Group $/.test(error.message))
          error.message += request.groupId
        throw error
      }
    })
  }
}

interface BrokerPool {
  withBroker<T>(callback: (one: object) => Promise<T>): Promise<T | null>
}

/** kafkajs asks each broker, and says that it found none when each of them refuses. */
export function keepDenials(pool: { readonly prototype: BrokerPool }): void {
  const { withBroker } = pool.prototype
  pool.prototype.withBroker = async function (callback) {
    let denial: unknown
    const found = await withBroker.call(this, (one) =>
      callback(one).catch((error: unknown) => {
        const root = error instanceof Error && error.cause instanceof Error ? error.cause : error
        if (root instanceof Error && denials.has(root)) denial = root
        throw error
      }),
    )
    if (found === null && denial !== undefined) throw denial
    return found as never
  }
}
