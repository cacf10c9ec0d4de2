import { uuidv7 } from '@weir/core/ids.ts'
import type { Tables } from '../servers/tables.ts'

/** Columns of a row, each as SQL. */
export type Columns = Readonly<Record<string, string | number>>

/** A time in SQL. */
export const sqlTime = (ms: number) => `fromUnixTimestamp64Milli(toInt64(${ms}), 'UTC')`

/** Puts rows into tables as metering would; `refusal` is what all decisions of a test have beside that of `refuse`. */
export function inserterInto(tables: Pick<Tables, 'client'>, refusal: Columns) {
  const insert = (into: string, columns: Columns) =>
    tables.client.command({
      query: `INSERT INTO weir.${into} (${Object.keys(columns).join(', ')}) SELECT ${Object.values(columns).join(', ')}`,
    })
  return {
    insert,
    /** A refusal by `minute`, of a request that costs 5, 98 of 100 units being used; resolves to its id. */
    async refuse(tsMs: number, more: Columns = {}): Promise<string> {
      const id = uuidv7(tsMs)
      await insert('decisions', {
        id: `toUUID('${id}')`,
        ts: sqlTime(tsMs),
        subject: "'acme'",
        key_id: "'acme-1'",
        plan: "'free'",
        route: "'*'",
        method: "'POST'",
        cost: 5,
        count: 1,
        outcome: "'deny'",
        reason: "'limit'",
        mode: "'enforce'",
        charged: "'no'",
        denied_by: "'minute'",
        retry_ms: 19_882,
        ...refusal,
        ...more,
      })
      return id
    },
  }
}
