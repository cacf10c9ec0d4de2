import { type ClickHouseClient, ClickHouseLogLevel, createClient } from '@clickhouse/client'

export type { ClickHouseClient }

/** A question to the rollups takes milliseconds; a server that says nothing for so long is not coming back to it. */
const requestMsDefault = 20_000

/** A client for the database `weir`, whose requests end after `requestMs`. Opens nothing until it is used. */
export function connectClickhouse(url: string, application: string, requestMs = requestMsDefault): ClickHouseClient {
  return createClient({
    url,
    application,
    request_timeout: requestMs,
    // Enough for every partition's insert and a few questions at once.
    max_open_connections: 16,
    // ClickHouse closes idle connections after 3 s by default; ours go first.
    keep_alive: { enabled: true, idle_socket_ttl: 2_500 },
    // Every error reaches the caller, who logs it in our form.
    log: { level: ClickHouseLogLevel.OFF },
    clickhouse_settings: { output_format_json_quote_64bit_integers: 1 },
  })
}

/** A server that is well answers a ping within milliseconds; whoever asks for readiness gives up after a second or two. */
const pingMs = 1_000

/** What is missing for readiness, or undefined. Never throws. */
export async function clickhouseMissing(client: ClickHouseClient): Promise<string | undefined> {
  const answer = await client.ping({ select: false, abort_signal: AbortSignal.timeout(pingMs) })
  return answer.success ? undefined : `ClickHouse does not answer (${answer.error.message})`
}
