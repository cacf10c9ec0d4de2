import { isOfOneSubject, type Limit } from '@weir/core/limits/limit.ts'
import type { AskedLimits, LimitQuestion } from './asked-limits.ts'
import type { AskedScope, LimitAdmin } from './limit-admin.ts'

/** `reset` forgets what was counted, blocks included; `unblock` lets in who was shut out, and keeps the counts. */
export type LimitChange = 'reset' | 'unblock'

/** What was done, limit by limit, and what was left alone with the reason. In the names of the wire. */
export interface ChangedLimits {
  readonly subject: string
  readonly changed: readonly {
    readonly name: string
    readonly keys: number
    /** Counts of an unblocked limit that have no room for one unit: the next request is refused, and blocks again. */
    readonly used_up: number
  }[]
  readonly left: readonly { readonly name: string; readonly because: string }[]
}

const unnamedAddress = 'counts by address: name it'

/** Why a limit is left as it is although it applies; undefined when it may be changed. */
function whyLeft({ by }: Limit, { ip, limit }: LimitQuestion): string | undefined {
  if (isOfOneSubject(by)) return undefined
  const isByAddress = by.some(({ kind }) => kind === 'ip')
  if (isByAddress) return ip === undefined ? unnamedAddress : undefined
  return limit === undefined ? 'counts all subjects together: name the limit' : undefined
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
  for (const key of keys.slice(0, looksMax)) if (!(await admin.look(limit, key, scope, 1)).asked.allowed) usedUp += 1
  return usedUp
}

/** Changes every limit that was asked for and that is the subject's own. Safe to repeat. */
export async function changeLimits(
  admin: LimitAdmin,
  asked: AskedLimits,
  question: LimitQuestion,
  change: LimitChange,
): Promise<ChangedLimits> {
  const changed: { name: string; keys: number; used_up: number }[] = []
  const left: { name: string; because: string }[] = []
  for (const { limit } of asked.limits) {
    const { name } = limit
    const why = whyLeft(limit, question)
    const found = why === undefined ? await admin.find(limit, asked.scope) : undefined
    if (found === undefined) {
      left.push({ name, because: why ?? unnamedAddress })
      continue
    }
    const keys = await admin[change](found.keys)
    const isUnblocked = change === 'unblock' && keys > 0
    changed.push({ name, keys, used_up: isUnblocked ? await countUsedUp(admin, limit, found.keys, asked.scope) : 0 })
    if (!found.complete) left.push({ name, because: 'has more counts than one run looks after: run it again' })
  }
  return { subject: asked.subject.id, changed, left }
}
