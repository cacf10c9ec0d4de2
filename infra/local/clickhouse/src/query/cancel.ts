import { setTimeout as delay } from 'node:timers/promises'
import type { Engine } from '../engine/engine.ts'
import { queryIdMark } from '../sql/query-ids.ts'
import { sqlString } from '../sql/tokens.ts'

/** A query that is just starting is not in the list yet, and one in a long computation looks up seldom: ask again. */
const attemptsMax = 60
const attemptEveryMs = 50

/**
 * Asks the engine to stop a query until it has ended. Never waits inside the engine: `KILL … SYNC` can hang for
 * minutes. Resolves when the query has ended, or after the last attempt.
 */
export async function cancelQuery(engine: Engine, queryId: string, ended: () => boolean): Promise<void> {
  const connection = engine.connect()
  const kill = `KILL QUERY WHERE Settings['log_comment'] = ${sqlString(queryIdMark + queryId)} ASYNC`
  try {
    for (let attempt = 0; attempt < attemptsMax && !ended(); attempt++) {
      await connection.query(kill, 'Null')
      await delay(attemptEveryMs)
    }
  } finally {
    connection.close()
  }
}
