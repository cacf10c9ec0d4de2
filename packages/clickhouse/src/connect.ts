import { type ClickHouseClient, createClient } from '@clickhouse/client'

export type { ClickHouseClient }

/** Below Kafka's session timeout of 30 s, so that a consumer never holds its partition longer than its insert may take. */
const requestTimeoutMs = 20_000

/** A client for the database `weir`. Opens nothing until it is used. */
export function connectClickhouse(url: string, application: string): ClickHouseClient {
  return createClient({
    url,
    application,
    request_timeout: requestTimeoutMs,
    // Enough for every partition's insert and a few questions at once.
    max_open_connections: 16,
    // ClickHouse closes idle connections after 3 s by default; ours go first.
    keep_alive: { enabled: true, idle_socket_ttl: 2_500 },
    clickhouse_settings: { output_format_json_quote_64bit_integers: 1 },
  })
}

/** What is missing for readiness, or undefined. Never throws. */
export async function clickhouseMissing(client: ClickHouseClient): Promise<string | undefined> {
  const answer = await client.ping()
  return answer.success ? undefined : `ClickHouse does not answer (${answer.error.message})`
}
