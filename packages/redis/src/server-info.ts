import { withTimeout } from '@weir/runtime/with-timeout.ts'
import type { Redis } from 'ioredis'
import { serverName } from './limit-connection.ts'

/** A healthy server answers within some milliseconds; what reads this must not wait for an ill one. */
const answerMs = 1_000

/** What a server says of itself. */
export interface ServerInfo {
  /** host:port; of a master that Sentinels name, its name. */
  readonly server: string
  /** The fields of INFO; undefined where it did not answer in time, or refused. */
  readonly fields: ReadonlyMap<string, string> | undefined
  /** How long a command without work took, there and back. */
  readonly pingSeconds: number
}

const fieldsOf = (text: string) =>
  new Map(
    text.split('\r\n').flatMap((line) => {
      const at = line.indexOf(':')
      return at < 0 ? [] : [[line.slice(0, at), line.slice(at + 1)] as const]
    }),
  )

/** Never rejects, and ends within its own deadline. Redis before 7 takes one section alone: so all of them. */
export async function readServerInfo(redis: Redis): Promise<ServerInfo> {
  const sentMs = performance.now()
  const ping = redis.time().then(() => (performance.now() - sentMs) / 1_000)
  const asked = Promise.all([ping, redis.info('all')]).catch(() => undefined)
  const answered = await withTimeout(asked, answerMs, undefined)
  const [pingSeconds = 0, text] = answered ?? []
  return { server: serverName(redis), fields: text === undefined ? undefined : fieldsOf(text), pingSeconds }
}

/** The fields `a=1,b=2` of an entry of INFO, such as those of a replica or a command. */
export const partsOf = (entry: string): Readonly<Record<string, string>> =>
  Object.fromEntries(entry.split(',').map((part) => part.split('=')))
