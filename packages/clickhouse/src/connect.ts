import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import {
  ClickHouseError,
  ClickHouseLogLevel,
  type ClickHouseSettings,
  type ClickHouseClient as Client,
  createClient,
} from '@clickhouse/client'
import { WeirError } from '@weir/core/errors.ts'
import { type Readiness, warningOf } from '@weir/runtime/ops-server.ts'
import { addressesOf } from './addresses.ts'
import { firstThatAnswers, statementsOf } from './first-that-answers.ts'
import { adviceFor, watchStatements } from './refusals.ts'
import { followAccess } from './server-access.ts'
import { statementSettings } from './statement-settings.ts'
import { type ClusterTarget, databasesOf, localDatabase } from './turn-migration.ts'
import { type ClickhouseServer, clickhouseAt } from './variables.ts'

/** A query of the rollups takes milliseconds; a server that is silent for 20 s will not answer it. */
const requestMsDefault = 20_000
/** Enough for every partition's insert and a few queries at the same time. */
const connectionsMax = 16

export type { ClickHouseSettings }

/** The library's client, and what Weir needs beyond it. */
export interface ClickHouseClient extends Client {
  /** Where statements find tables that they name without a database. */
  readonly database: string
  /** The cluster whose tables these are; undefined for one server. */
  readonly cluster: ClusterTarget | undefined
  /** What a person must change so that statements of the last minute are accepted; undefined if all were. */
  refused(): string | undefined
  /** Makes the database, of a cluster both databases of every server, unless it is there. */
  createDatabase(): Promise<void>
}

/** What statements are sent with to a server of a cluster, because servers differ in their defaults. */
const clusterSettings: ClickHouseSettings = {
  // An insert is answered when most replicas of its shard have it.
  insert_quorum: 'auto',
  insert_quorum_parallel: 1,
  insert_quorum_timeout: 10_000,
  // An insert that outlives its session with Keeper fails, and is sent again: none goes on unseen.
  insert_keeper_max_retries: '0',
  // Rows are on their shard before the answer, not in a queue on the disk of the server that was asked.
  distributed_foreground_insert: 1,
  // A question within a question is about all shards too.
  distributed_product_mode: 'global',
  // A replica that is two seconds behind is not asked, and none rather than such a one: watermarks count on it.
  max_replica_delay_for_distributed_queries: '2',
  fallback_to_stale_replicas_for_distributed_queries: 0,
}

/** Of a cluster, its `Distributed` tables over all shards, or a server's own ones. */
type Place = 'all shards' | 'local'

/** The cluster of a server, and the database that statements are about. */
function placeOf({ clickhouseCluster, clickhouseDatabase: database }: ClickhouseServer, where: Place) {
  if (clickhouseCluster === '') return { cluster: undefined, database }
  const cluster = { cluster: clickhouseCluster, database }
  return { cluster, database: where === 'local' ? localDatabase(database) : database }
}

/**
 * A client for the tables of a server, whose requests end after `requestMs`. Opens nothing until it is used. A failure
 * that a variable or a right would end has a message that names it.
 */
export function connectClickhouse(
  given: ClickhouseServer | string,
  application: string,
  requestMs = requestMsDefault,
  where: Place = 'all shards',
): ClickHouseClient {
  const server = typeof given === 'string' ? clickhouseAt(given) : given
  const accessNow = followAccess(server)
  const urls = addressesOf(server.clickhouseUrl.text)
    .flat()
    .map((address) => Object.assign(new URL(address), { username: '', password: '', pathname: '' }))
  const [first] = urls
  if (first === undefined) throw new Error('an address has a host')
  const { cluster, database } = placeOf(server, where)
  const Agent = first.protocol === 'https:' ? HttpsAgent : HttpAgent
  const open = (url: URL, databaseNow: string) => {
    // A client ends sockets that have rested, also while another uses them: clients share no agent.
    const agent = new Agent({ keepAlive: true, maxSockets: connectionsMax })
    return createClient({
      url,
      application,
      database: databaseNow,
      request_timeout: requestMs,
      // A changed CA is for the next socket; the agent uses none that was opened under another.
      http_agent: agent,
      // ClickHouse closes idle connections after 3 s by default; ours go first.
      keep_alive: { enabled: true, idle_socket_ttl: 2_500, eagerly_destroy_stale_sockets: true },
      // The library reads the headers for every request: a password that was replaced needs no new client.
      set_basic_auth_header: false,
      http_headers: {
        get Authorization() {
          const { username, password, ca } = accessNow()
          if (ca !== undefined) Object.assign(Reflect.get(agent, 'options'), { ca })
          return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
        },
      },
      // Every error reaches the caller, who logs it in our form.
      log: { level: ClickHouseLogLevel.OFF },
      clickhouse_settings: { ...statementSettings, ...(cluster === undefined ? {} : clusterSettings) },
    })
  }

  const advise = (error: unknown, hasAnswered: boolean) =>
    adviceFor(error, {
      access: accessNow(),
      url: { protocol: first.protocol, host: urls.map(({ host }) => host).join(',') },
      database,
      hasAnswered,
    })
  const createDatabase = async () => {
    const outside = open(first, 'default')
    const { command } = watchStatements(outside, advise)
    const names = cluster === undefined ? [database] : databasesOf(cluster)
    const create = async () => {
      for (const name of names) await command({ query: `CREATE DATABASE IF NOT EXISTS ${name}` })
    }
    await create().finally(() => outside.close())
  }
  const client = open(first, database)
  const clients = [client, ...urls.slice(1).map((url) => open(url, database))]
  const closings = clients.map((one) => one.close.bind(one))
  const close = async () => void (await Promise.all(closings.map((closeOne) => closeOne())))
  const sent = urls.length === 1 ? client : firstThatAnswers(clients.map(statementsOf))
  return Object.assign(client, { database, cluster, createDatabase, close, ...watchStatements(sent, advise) })
}

/** Counts as numbers where they stay far below 2^53; without it 64-bit integers are text. */
export const countsAsNumbers: ClickHouseSettings = { output_format_json_quote_64bit_integers: 0 }

/** How rows of decisions are written: numbers as numbers, limits by name. */
export const decisionFormat = {
  clickhouse_settings: { ...countsAsNumbers, output_format_json_named_tuples_as_objects: 1 as const },
}

/** Returns the rows of a query. `params` are values for its `{name:Type}`. Rejects with ClickHouse's error. */
export async function readRows<Row>(
  client: ClickHouseClient,
  query: string,
  params: Record<string, unknown> = {},
  more: { readonly abort_signal?: AbortSignal; readonly clickhouse_settings?: ClickHouseSettings } = {},
): Promise<Row[]> {
  const answer = await client.query({ query, query_params: params, format: 'JSONEachRow', ...more })
  return answer.json<Row>()
}

/** A healthy server answers a ping within milliseconds; a readiness probe gives up after a second or two. */
const pingMs = 1_000

/** What is missing for readiness, or undefined. Never throws. */
export async function clickhouseMissing(client: ClickHouseClient): Promise<string | undefined> {
  const ping = (select: boolean) => client.ping({ select, abort_signal: AbortSignal.timeout(pingMs) })
  const [reached, asked] = await Promise.all([ping(false), ping(true)])
  if (!reached.success) return `ClickHouse does not answer (${reached.error.message})`
  // A question waits behind other statements: that it has no answer yet is nothing.
  if (!asked.success && asked.error instanceof ClickHouseError) return asked.error.message
  return undefined
}

/** As `clickhouseMissing`, with a warning of statements that are refused where the server itself is well. */
export async function clickhouseReadiness(client: ClickHouseClient): Promise<Readiness> {
  return (await clickhouseMissing(client)) ?? warningOf(client.refused())
}

/** The same for a process that does its main work without ClickHouse. */
export async function clickhouseWarning(client: ClickHouseClient): Promise<Readiness> {
  const found = await clickhouseReadiness(client)
  return typeof found === 'string' ? { warning: found } : found
}

/**
 * For commands, which wait for nothing: an operating fault for what an operator can do something about, everything else
 * as it was.
 */
export const throwRefusal =
  (client: ClickHouseClient) =>
  (error: unknown): never => {
    if (!(error instanceof Error) || client.refused() === undefined) throw error
    throw new WeirError('CLICKHOUSE_UNAVAILABLE', error.message, error)
  }
