import { periodBoundaries } from '@weir/core/calendar/calendar.ts'
import type { Decision } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import { decodeReply, encodeCall } from '@weir/core/limits/script-codec.ts'
import type { Redis } from 'ioredis'
import {
  blockKeyBeside,
  type CountKeys,
  countKeys,
  type KnownScope,
  markerKey,
  settlementKey,
  tallyKey,
} from './keys.ts'
import { readScript } from './scripts.ts'

/** Keys looked at per step of a search: about a millisecond of Redis's time. */
const scanCount = 1_000
/** Counts found for one limit at most; a person reads no longer list, and a reset that finds more says so. */
const countsMax = 10_000
/** Keys removed per command; freeing memory is done beside, so that this takes well under a millisecond. */
const unlinkMax = 500

/** Whose calendar a limit's periods follow, and what was named of the scope. */
export interface AskedScope extends KnownScope {
  readonly timeZone: string
  readonly anchor: number
}

/** One count of a limit, as it stands. */
export interface CountLook {
  readonly key: string
  /** A look at it, without any cost: its state, and whether a block stands. */
  readonly now: Decision
  /** What a request of the cost would get now, as far as this count is concerned. */
  readonly asked: Decision
}

export interface Counts {
  readonly keys: readonly string[]
  /** Whether the scope was known whole, so that there is just this one; else they were searched for. */
  readonly exact: boolean
  /** False when the search ended at its bound. */
  readonly complete: boolean
}

/** Looks after limits for people: slow beside a decision, and never part of one. */
export interface LimitAdmin {
  /** Where the limit counts. `undefined`: it counts by an address, and none was named. */
  find(limit: Limit, scope: KnownScope): Promise<Counts | undefined>
  look(limit: Limit, key: string, scope: AskedScope, cost: number): Promise<CountLook>
  /** Forgets counts with their blocks. Resolves to how many of them were there. */
  reset(keys: readonly string[]): Promise<number>
  /** Lifts the blocks of counts, which stay as they are. Resolves to how many stood. */
  unblock(keys: readonly string[]): Promise<number>
}

/** `serverOf` gives the server that holds a key: always the same one, except in a Cluster. */
export function createLimitAdmin(serverOf: (key: string) => Redis): LimitAdmin {
  const { source } = readScript('decide')

  const search = async ({ pattern, isCount }: Extract<CountKeys, { kind: 'several' }>): Promise<Counts> => {
    const found = new Set<string>()
    const redis = serverOf(pattern)
    let cursor = '0'
    do {
      const [next, keys] = await redis.scan(cursor, 'MATCH', pattern, 'COUNT', scanCount)
      for (const key of keys) if (isCount(key)) found.add(key)
      cursor = next
    } while (cursor !== '0' && found.size < countsMax)
    return { keys: [...found].sort(), exact: false, complete: cursor === '0' }
  }

  const unlink = async (keys: readonly string[]): Promise<number> => {
    let removed = 0
    for (let at = 0; at < keys.length; at += unlinkMax) {
      const some = keys.slice(at, at + unlinkMax)
      removed += await serverOf(some[0] ?? '').unlink(...some)
    }
    return removed
  }

  return {
    async find(limit, scope) {
      const where = countKeys(limit, scope)
      if (where.kind === 'unknown') return undefined
      return where.kind === 'key' ? { keys: [where.key], exact: true, complete: true } : await search(where)
    },
    async look(limit, key, scope, cost) {
      const { timeZone, anchor } = scope
      const values = { keyId: '', ip: '', route: '', method: '', ...scope }
      const request = { scope: values, peek: true, limits: [limit], timeZone, anchor }
      const operations = [0, cost].map((units) => ({ kind: 'decide', request: { ...request, cost: units } }) as const)
      const { keys, argv } = encodeCall(operations, {
        keyOf: () => key,
        blockKeyOf: () => blockKeyBeside(key),
        markerKeyOf: markerKey,
        settlementKeyOf: ({ scope: { subject } }, { id }) => settlementKey(subject, id),
        tallyKeyOf: tallyKey,
        markersMax: 0, // looks leave none
        boundariesOf: ({ span }) =>
          span.kind === 'period' ? periodBoundaries(span.unit, timeZone, anchor, Date.now()) : undefined,
        nowMs: undefined,
      })
      const reply = await serverOf(key).callBuffer('eval', source, keys.length, ...keys, ...argv)
      const [now, asked] = decodeReply(reply, operations).outcomes.map((outcome) =>
        'allowed' in outcome ? outcome : undefined,
      )
      if (now === undefined || asked === undefined) throw new Error(`decide.lua did not decide on ${key}`)
      return { key, now, asked }
    },
    reset: (keys) => unlink(keys.flatMap((key) => [key, blockKeyBeside(key)])),
    unblock: (keys) => unlink(keys.map(blockKeyBeside)),
  }
}
