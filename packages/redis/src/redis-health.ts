import type { Clock } from '@weir/core/clock.ts'
import { withTimeout } from '@weir/runtime/with-timeout.ts'
import type { Redis } from 'ioredis'
import type { ClusterConnection } from './cluster-connection.ts'
import type { ClusterServers } from './cluster-servers.ts'
import { faultOf, lackingOf } from './connection-state.ts'
import { serverName } from './limit-connection.ts'
import type { StoreCounts } from './limit-store-counters.ts'
import type { ScriptClient } from './script-client.ts'
import { readScriptError } from './script-error.ts'

/** Each a sentence, or undefined when there is nothing to say. */
export interface RedisHealth {
  /** Why requests are not decided by Redis now. */
  readonly problem: string | undefined
  /** What makes it decide wrongly, although it decides. */
  readonly warning: string | undefined
}

/** Callers get an answer up to this old, so that asking often costs Redis nothing. */
const freshMs = 1_000
/** A server that does not answer within this time is described by its breaker. */
const answerMs = 1_000
/** How long a refusal by Redis is reported; without requests nothing would show that it has ended. */
const refusedToldMs = 5_000
/**
 * This machine's clock makes calendar boundaries and Redis's picks them: further apart, periods begin late or early.
 */
const clockOffMsMax = 500

/** A call that asks for nothing is refused by the script itself, with this code: so it can be run. */
const refusesNothing = 'DECIDEARGS'

const joined = (texts: readonly (string | undefined)[]) => {
  const found = texts.filter((text) => text !== undefined)
  return found.length === 0 ? undefined : found.join('; ')
}

/** The answer of one server; undefined when it is late or refused. */
const answerOf = <T>(answer: Promise<T>): Promise<T | undefined> =>
  withTimeout(
    answer.catch(() => undefined),
    answerMs,
    undefined,
  )

/** What a server says of itself, each part undefined if it may not be asked. */
async function examine(server: ScriptClient, clock: Clock): Promise<RedisHealth> {
  const { redis } = server
  const where = serverName(redis)
  if (redis.status !== 'ready') {
    return { problem: `the connection to ${where} is ${redis.status}. ${faultOf(redis)}`.trim(), warning: undefined }
  }
  const lacking = answerOf(lackingOf(redis))
  if (server.isDown) return { problem: joined([`${where} did not respond in time`, await lacking]), warning: undefined }
  const sentMs = clock.nowMs()
  const time = redis.time().then((found) => clockWarning(found, sentMs, clock.nowMs()))
  const run = server.callNothing().then(
    () => undefined,
    (error: unknown) => scriptProblem(error),
  )
  const memory = redis.info('memory').then((text) => evictionWarning(text))
  const [off, problem, evicts] = await Promise.all([answerOf(time), answerOf(run), answerOf(memory)])
  const lacks = await lacking
  const warnings = [off, evicts].map((warning) => warning && `${where} ${warning}`)
  if (problem === undefined) return { problem, warning: joined([...warnings, lacks]) }
  return { problem: joined([`${where} ${problem}`, lacks]), warning: joined(warnings) }
}

function scriptProblem(error: unknown): string | undefined {
  if (readScriptError(error).code === refusesNothing) return undefined
  return `cannot run the script: ${error instanceof Error ? error.message : String(error)}`
}

/** Half the round trip is allowed on top: Redis read its clock at some time within it. */
function clockWarning([seconds, micros]: readonly (number | string)[], sentMs: number, receivedMs: number) {
  const theirMs = Number(seconds) * 1_000 + Number(micros) / 1_000
  const ourMs = (sentMs + receivedMs) / 2
  const offMs = Math.round(theirMs - ourMs)
  if (Math.abs(offMs) <= clockOffMsMax + (receivedMs - sentMs) / 2) return undefined
  return `has a clock that is ${Math.abs(offMs)} ms ${offMs > 0 ? 'ahead' : 'behind'}: synchronize the clocks`
}

function evictionWarning(info: string): string | undefined {
  const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1]
  if (policy === undefined || policy === 'noeviction') return undefined
  return `may evict counts (maxmemory-policy ${policy}), so requests above the limit would be allowed: set noeviction`
}

/** Returns what reports how Redis is, for readiness. Without requests for that it sends Redis nothing. */
export function createHealthCheck(
  redis: Redis | ClusterConnection,
  servers: ScriptClient | ClusterServers,
  counts: Pick<StoreCounts, 'refused'>,
  clock: Clock,
): () => Promise<RedisHealth> {
  let foundMs = Number.NEGATIVE_INFINITY
  let found: Promise<RedisHealth> = Promise.resolve({ problem: undefined, warning: undefined })

  async function examineAll(): Promise<RedisHealth> {
    const all = await Promise.all(servers.masters.map((server) => examine(server, clock)))
    const { status } = redis
    const isKnown = status === 'ready' || all.some(({ problem }) => problem !== undefined)
    const last = counts.refused
    const isRecent = last !== undefined && performance.now() - last.atMs < refusedToldMs
    const refusal = isRecent && isAboutRedis(last.message) ? `Redis rejected a call: ${last.message}` : undefined
    return {
      problem: joined([
        isKnown ? undefined : `Redis is ${status}`,
        isKnown || !('problem' in redis) ? undefined : await redis.problem(),
        ...all.map(({ problem }) => problem),
        refusal,
      ]),
      warning: joined(all.map(({ warning }) => warning)),
    }
  }

  return () => {
    if (performance.now() - foundMs >= freshMs) {
      foundMs = performance.now()
      found = examineAll()
    }
    return found
  }
}

/** Whether this says something about Redis, not about a call or where a slot is. */
const isAboutRedis = (message: string) => !/^(DECIDEARGS|NOSCRIPT|MOVED|ASK|TRYAGAIN|CROSSSLOT)/.test(message)
