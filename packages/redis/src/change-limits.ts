import { isOfOneSubject, type Limit } from '@weir/core/limits/limit.ts'
import type { AskedLimits, LimitQuestion } from './asked-limits.ts'
import type { LimitAdmin } from './limit-admin.ts'

/** `reset` forgets what was counted, blocks included; `unblock` lets in who was shut out, and keeps the counts. */
export type LimitChange = 'reset' | 'unblock'

/** What was done, limit by limit, and what was left alone with the reason. In the names of the wire. */
export interface ChangedLimits {
  readonly subject: string
  readonly changed: readonly { readonly name: string; readonly keys: number }[]
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

/** Changes every limit that was asked for and that is the subject's own. Safe to repeat. */
export async function changeLimits(
  admin: LimitAdmin,
  asked: AskedLimits,
  question: LimitQuestion,
  change: LimitChange,
): Promise<ChangedLimits> {
  const changed: { name: string; keys: number }[] = []
  const left: { name: string; because: string }[] = []
  for (const { limit } of asked.limits) {
    const { name } = limit
    const why = whyLeft(limit, question)
    const found = why === undefined ? await admin.find(limit, asked.scope) : undefined
    if (found === undefined) {
      left.push({ name, because: why ?? unnamedAddress })
      continue
    }
    changed.push({ name, keys: await admin[change](found.keys) })
    if (!found.complete) left.push({ name, because: 'has more counts than one run looks after: run it again' })
  }
  return { subject: asked.subject.id, changed, left }
}
