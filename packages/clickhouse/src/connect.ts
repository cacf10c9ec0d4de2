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
import type { Readiness } from '@weir/runtime/ops-server.ts'
import { adviceFor, watchStatements } from './refusals.ts'
import { followAccess } from './server-access.ts'
import { type ClickhouseServer, clickhouseAt } from './variables.ts'

/** A query of the rollups takes milliseconds; a server that is silent for 20 s will not answer it. */
const requestMsDefault = 20_000
/** Enough for every partition's insert and a few queries at the same time. */
const connectionsMax = 16

/** The library's client, and what Weir needs beyond it. */
export interface ClickHouseClient extends Client {
  /** Where statements find tables that they name without a database. */
  readonly database: string
  /** What a person must change so that statements of the last minute are accepted; undefined if all were. */
  refused(): string | undefined
  /** Makes the database unless it is there. */
  createDatabase(): Promise<void>
}

/**
 * A client for the tables of a server, whose requests end after `requestMs`. Opens nothing until it is used. A failure
 * that a variable or a right would end has a message that names it.
 */
export function connectClickhouse(
  given: ClickhouseServer | string,
  application: string,
  requestMs = requestMsDefault,
): ClickHouseClient {
  const server = typeof given === 'string' ? clickhouseAt(given) : given
  const accessNow = followAccess(server)
  const url = new URL(server.clickhouseUrl.text)
  url.username = url.password = url.pathname = ''
  const database = server.clickhouseDatabase
  const Agent = url.protocol === 'https:' ? HttpsAgent : HttpAgent
  const open = (databaseNow: string) => {
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
      clickhouse_settings: { output_format_json_quote_64bit_integers: 1 },
    })
  }

  const advise = (error: unknown, hasAnswered: boolean) =>
    adviceFor(error, { access: accessNow(), url, database, hasAnswered })
  const createDatabase = async () => {
    const outside = open('default')
    const { command } = watchStatements(outside, advise)
    await command({ query: `CREATE DATABASE IF NOT EXISTS ${database}` }).finally(() => outside.close())
  }
  const client = open(database)
  return Object.assign(client, { database, createDatabase, ...watchStatements(client, advise) })
}

/** Counts as numbers where they stay far below 2^53; without it 64-bit integers are text. */
export const countsAsNumbers: ClickHouseSettings = { output_format_json_quote_64bit_integers: 0 }

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
  const warning = client.refused()
  return (await clickhouseMissing(client)) ?? (warning === undefined ? undefined : { warning })
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
