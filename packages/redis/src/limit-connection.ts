import { WeirError } from '@weir/core/errors.ts'
import type { Redis } from 'ioredis'
import type { ClusterConnection } from './cluster-connection.ts'
import { redisProblem } from './connection-state.ts'
import { keySlot } from './key-slot.ts'

/** Redis did not answer an operator's command. */
export const redisUnavailable = (why: string, cause?: unknown): WeirError =>
  new WeirError(
    'REDIS_UNAVAILABLE',
    // What begins so says what to look at.
    why.startsWith('Redis ')
      ? why
      : `Redis did not answer: ${why}. Is it running, and does WEIR_REDIS_URL or --data name it?`,
    cause,
  )

/** Redis's own errors, and ioredis's words for a broken connection; anything else is a bug, and is reported as one. */
export const isRedisFault = (error: unknown): error is Error =>
  error instanceof Error &&
  (['ReplyError', 'MaxRetriesPerRequestError', 'AbortError'].includes(error.name) ||
    /connection is closed|stream isn't writeable|timed out|ECONN|EPIPE/i.test(error.message))

/** One Redis, or the masters of a Cluster. */
export type RedisServers = Redis | ClusterConnection

/** Gives the server that holds a key: always the same one, except in a Cluster. */
export function serverFinder(connection: RedisServers): (key: string) => Redis {
  return (key) => {
    const server = 'serverOf' in connection ? connection.serverOf(keySlot(key)) : connection
    if (server === undefined) throw redisUnavailable('no master of the Cluster holds the key')
    return server
  }
}

/** host:port; a master that Sentinels name has no address of its own here, but its name. */
export const serverName = ({ options: { sentinels, name, host, port } }: Redis): string =>
  sentinels ? `${name}` : `${host}:${port}`

/** The servers that hold keys: one, or a Cluster's masters as far as they are known. */
export const mastersOf = (connection: RedisServers): readonly Redis[] =>
  'masters' in connection ? connection.masters : [connection]

/** Why keys cannot be read and written now, in a sentence: for readiness. */
export const problemOf = (connection: RedisServers): Promise<string | undefined> =>
  'problem' in connection ? connection.problem() : redisProblem(connection)
