import type { ClickHouseSettings } from '@clickhouse/client'
import type { ClickHouseClient } from './connect.ts'

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
