import { ClickHouseError, type ClickHouseClient as Client } from '@clickhouse/client'

/** How statements are sent. */
export type Statements = Pick<Client, 'query' | 'command' | 'exec' | 'insert' | 'ping'>

/** A client's own way to send statements, also after the client was given another. */
export const statementsOf = (client: Client): Statements => ({
  query: client.query.bind(client),
  command: client.command.bind(client),
  exec: client.exec.bind(client),
  insert: client.insert.bind(client),
  ping: client.ping.bind(client),
})

/** The replica lost its session with Keeper, and takes no rows until it has another. */
const readOnlyReplica = '242'

/** Codes of connections that fail, and the words of a client that waited for an answer long enough. */
const failedConnection = /^E(?:AI_|CONN|HOST|NET|NOTFOUND|PIPE|TIMEDOUT)/
const timedOut = /^Timeout error/

/** Whether a statement failed for its server rather than for itself, so that another replica may take it. */
export function isServerAway(error: unknown): boolean {
  if (error instanceof ClickHouseError) return error.code === readOnlyReplica
  if (!(error instanceof Error)) return false
  const code: unknown = Reflect.get(error, 'code')
  return timedOut.test(error.message) || (typeof code === 'string' && failedConnection.test(code))
}

/**
 * Sends every statement to one of several servers, until that one does not answer: then to the next. A question that
 * got no answer is asked of each server once; everything else is for the caller to repeat.
 */
export function firstThatAnswers(servers: readonly Statements[]): Statements {
  let at = 0
  const send = (name: 'query' | 'command' | 'exec' | 'insert', triesMax: number) => {
    return async (params: { readonly abort_signal?: AbortSignal }) => {
      for (let tries = 1; ; tries += 1) {
        const used = at
        const server = servers[used]
        if (server === undefined) throw new Error('there is a server')
        try {
          return await Reflect.apply(server[name], server, [params])
        } catch (error) {
          if (params.abort_signal?.aborted === true || !isServerAway(error)) throw error
          if (used === at) at = (at + 1) % servers.length
          if (tries >= triesMax) throw error
        }
      }
    }
  }
  return {
    query: send('query', servers.length) as Client['query'],
    command: send('command', 1) as Client['command'],
    exec: send('exec', 1) as Client['exec'],
    insert: send('insert', 1) as Client['insert'],
    async ping(params) {
      const answers = await Promise.all(servers.map((server) => server.ping(params)))
      return answers.find(({ success }) => success) ?? answers[at] ?? { success: false, error: new Error('no server') }
    },
  }
}
