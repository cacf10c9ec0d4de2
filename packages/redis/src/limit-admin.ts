import type { ForgottenCount } from '@weir/core/audit/quota.ts'
import { periodBoundaries } from '@weir/core/calendar/calendar.ts'
import type { Decision } from '@weir/core/limits/decision.ts'
import { isOfOneSubject, type Limit } from '@weir/core/limits/limit.ts'
import { calendarOf } from '@weir/core/limits/limit-store.ts'
import { decodeReply, encodeCall } from '@weir/core/limits/script-codec.ts'
import type { ExplainedLimit } from '@weir/policy/match/resolve-limits.ts'
import type { Redis } from 'ioredis'
import type { AskedLimits, AskedScope, LimitQuery } from './asked-limits.ts'
import { forgetCounts } from './forget-counts.ts'
import {
  blockKeyBeside,
  type CountKeys,
  countKeys,
  type KnownScope,
  markerKey,
  settlementKey,
  tallyKey,
  treeSubject,
} from './keys.ts'
import { scanKeys } from './scan-keys.ts'
import { readScript } from './scripts.ts'

/**
 * Counts found for one limit at most: some 80 kB in the entry of a reset. A person reads no longer list, and a reset
 * that finds more says so.
 */
const countsMax = 1_000
/** Keys removed per command; Redis frees the memory in a thread, so that this takes well under a millisecond. */
const unlinkMax = 500

/** One count of a limit, as it is now. */
export interface PeekedCount {
  readonly key: string
  /** A peek without any cost: its state, and whether it is blocked. */
  readonly now: Decision
  /** What a request of the cost would get now, as far as this count is concerned. */
  readonly asked: Decision
}

interface Counts {
  readonly keys: readonly string[]
  /** Whether the scope was known whole, so that there is just this one; else they were searched for. */
  readonly exact: boolean
  /** False when the search ended at its bound. */
  readonly complete: boolean
}

/**
 * Returns what looks after limits for people: slow compared with a decision, and never part of one. `serverOf` returns
 * the server that holds a key: always the same one, except in a Cluster.
 */
export function createLimitAdmin(serverOf: (key: string) => Redis) {
  const { source } = readScript('decide')

  const search = async ({ pattern, isCount }: Extract<CountKeys, { kind: 'several' }>): Promise<Counts> => {
    const found = new Set<string>()
    let complete = true
    for await (const keys of scanKeys(serverOf(pattern), pattern)) {
      complete = found.size < countsMax
      if (!complete) break
      for (const key of keys) if (isCount(key)) found.add(key)
    }
    return { keys: [...found].sort(), exact: false, complete }
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
    /** Where the limit counts. `undefined`: it counts by an address, and none was named. */
    async find(limit: Limit, scope: KnownScope): Promise<Counts | undefined> {
      const where = countKeys(limit, scope)
      if (where.kind === 'unknown') return undefined
      return where.kind === 'key' ? { keys: [where.key], exact: true, complete: true } : await search(where)
    },
    /** How one count stands, and what a request of this cost would get. */
    async peek(limit: Limit, key: string, scope: AskedScope, cost: number): Promise<PeekedCount> {
      const values = { keyId: '', ip: '', route: '', method: '', ...scope }
      const { timeZone, anchor } = calendarOf(limit, { ...scope, scope: values })
      const request = { scope: values, peek: true, limits: [limit], timeZone, anchor }
      const operations = [0, cost].map((wanted) => {
        const units = new Map([[limit.unit ?? '', wanted]])
        return { kind: 'decide', request: { ...request, cost: wanted, units } } as const
      })
      const { keys, argv } = encodeCall(operations, {
        keyOf: () => key,
        blockKeyOf: () => blockKeyBeside(key),
        markerKeyOf: markerKey,
        settlementKeyOf: ({ scope: asked }, { id }) => settlementKey(treeSubject(asked), id),
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
    /** Forgets counts of one subject with their blocks. */
    reset: (limit: Limit | undefined, counts: readonly string[]) => forgetCounts(serverOf, limit, counts),
    /** Lifts the blocks of counts, which stay as they are. Resolves to how many were set. */
    unblock: (keys: readonly string[]) => unlink(keys.map(blockKeyBeside)),
  }
}

/** Looks after limits, see `createLimitAdmin`. */
export type LimitAdmin = ReturnType<typeof createLimitAdmin>

/** `reset` deletes counts and their blocks; `unblock` deletes the blocks, and keeps the counts. */
export type LimitChange = 'reset' | 'unblock'

/** Gets what a reset of one limit removed. */
export type OnForgotten = (limit: string, forgotten: readonly ForgottenCount[]) => void

/** What was done, limit by limit, and what was left alone with the reason. In the names of the wire. */
export interface ChangedLimits {
  readonly subject: string
  readonly changed: readonly {
    readonly name: string
    readonly keys: number
    /** Counts of an unblocked limit that have no unit left: the next request is denied, and blocks again. */
    readonly used_up: number
  }[]
  readonly left: readonly { readonly name: string; readonly because: string }[]
}

const unnamedAddress = 'counts per address: specify the address'

/** Why a limit is left as it is although it applies; undefined when it may be changed. */
function whyLeft({ limit: { by }, at }: ExplainedLimit, { ip, limit }: LimitQuery): string | undefined {
  if (at !== undefined) return `counts all of ${at}: name that subject`
  if (isOfOneSubject(by)) return undefined
  const isByAddress = by.some(({ kind }) => kind === 'ip')
  if (isByAddress) return ip === undefined ? unnamedAddress : undefined
  return limit === undefined ? 'counts all subjects together: add the name of the limit' : undefined
}

/** Counts that are looked at after an unblock; with more, that some are used up is all that a person wants to know. */
const looksMax = 200

async function countUsedUp(
  admin: LimitAdmin,
  limit: Limit,
  keys: readonly string[],
  scope: AskedScope,
): Promise<number> {
  let usedUp = 0
  for (const key of keys.slice(0, looksMax)) if (!(await admin.peek(limit, key, scope, 1)).asked.allowed) usedUp += 1
  return usedUp
}

/**
 * Changes every limit that was asked for and that is the subject's own. Safe to repeat. `onForgotten` gets the units of
 * calendar quotas that a reset removed, by limit: without a record of them, a restore brings them back.
 */
export async function changeLimits(
  admin: LimitAdmin,
  asked: AskedLimits,
  query: LimitQuery,
  change: LimitChange,
  onForgotten?: OnForgotten,
): Promise<ChangedLimits> {
  const changed: { name: string; keys: number; used_up: number }[] = []
  const left: { name: string; because: string }[] = []
  for (const explained of asked.limits) {
    const { limit } = explained
    const { name } = limit
    const why = whyLeft(explained, query)
    const found = why === undefined ? await admin.find(limit, asked.scope) : undefined
    if (found === undefined) {
      left.push({ name, because: why ?? unnamedAddress })
      continue
    }
    let keys: number
    if (change === 'unblock') keys = await admin.unblock(found.keys)
    else {
      const { removed, forgotten } = await admin.reset(limit, found.keys)
      keys = removed
      onForgotten?.(name, forgotten)
    }
    const isUnblocked = change === 'unblock' && keys > 0
    changed.push({ name, keys, used_up: isUnblocked ? await countUsedUp(admin, limit, found.keys, asked.scope) : 0 })
    if (!found.complete) left.push({ name, because: 'has more counts than one run looks after: run it again' })
  }
  return { subject: asked.subject.id, changed, left }
}

/** What lifting one block has done. In the names of the wire. */
export interface LiftedBlock {
  /** False where there was no block any more. */
  readonly lifted: boolean
  readonly forgotten: boolean
  /** The count has no unit left: the next request is denied, and blocks again. */
  readonly used_up: boolean
}

/**
 * Lifts the block of one count; `forget` removes the count, too. `limit` is undefined if the policy has it no longer.
 * Safe to repeat.
 */
export async function liftBlock(
  admin: LimitAdmin,
  key: string,
  limit: Limit | undefined,
  forget: boolean,
  scope: AskedScope,
  onForgotten?: OnForgotten,
): Promise<LiftedBlock> {
  const lifted = (await admin.unblock([key])) > 0
  if (forget) onForgotten?.(limit?.name ?? '', (await admin.reset(limit, [key])).forgotten)
  const usedUp = forget || limit === undefined ? 0 : await countUsedUp(admin, limit, [key], scope)
  return { lifted, forgotten: forget, used_up: usedUp > 0 }
}
