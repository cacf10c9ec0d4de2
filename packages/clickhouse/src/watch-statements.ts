import type { ClickHouseClient } from '@clickhouse/client'

/** Refused statements that are remembered; each service sends some dozens, in a few forms. */
const refusalsMax = 100
/** A statement that is not repeated in this time is forgotten. */
const refusalMs = 60_000

/** Returns a statement's form: equal for statements that differ in their values alone. */
const formOf = (statement: string) => statement.replaceAll(/'(?:[^'\\]|\\.)*'|\b\d+\b/g, '')

/**
 * Wraps the methods of a client that send statements: an error that an operator can fix gets the advice as its message,
 * and `refused` returns the advice for statements that were not accepted since.
 */
export function watchStatements(
  client: ClickHouseClient,
  adviceFor: (error: unknown, hasAnswered: boolean) => string | undefined,
) {
  const refusals = new Map<string, { readonly advice: string; readonly atMs: number }>()
  let hasAnswered = false
  const advised = (error: unknown): string | undefined => {
    const advice = adviceFor(error, hasAnswered)
    if (advice === undefined || !(error instanceof Error)) return advice
    error.stack = error.stack?.replace(error.message, () => advice) ?? advice
    error.message = advice
    return advice
  }
  const watched = (name: 'query' | 'command' | 'exec' | 'insert') => {
    const send = client[name].bind(client)
    return async (params: { readonly query?: string; readonly table?: string }) => {
      const form = formOf(params.query ?? params.table ?? '')
      try {
        const answer = await Reflect.apply(send, undefined, [params])
        hasAnswered = true
        refusals.delete(form)
        return answer
      } catch (error) {
        const advice = advised(error)
        if (refusals.size >= refusalsMax) refusals.clear()
        if (advice !== undefined) refusals.set(form, { advice, atMs: performance.now() })
        throw error
      }
    }
  }
  const ping = client.ping.bind(client)
  return {
    /** What a person must change so that statements of the last minute are accepted; undefined if all were. */
    refused(): string | undefined {
      const sinceMs = performance.now() - refusalMs
      const lasting = [...refusals.values()].filter(({ atMs }) => atMs >= sinceMs)
      return lasting.length === 0 ? undefined : [...new Set(lasting.map(({ advice }) => advice))].join('; ')
    },
    query: watched('query'),
    command: watched('command'),
    exec: watched('exec'),
    insert: watched('insert'),
    async ping(params: Parameters<typeof ping>[0]) {
      const answer = await ping(params)
      if (answer.success) hasAnswered = true
      else advised(answer.error)
      return answer
    },
  }
}
