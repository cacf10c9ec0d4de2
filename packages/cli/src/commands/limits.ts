import type { Limit } from '@weir/core/limits/limit.ts'
import { isOfOneSubject } from '@weir/core/policy/read-scope.ts'
import type { LimitAdmin } from '@weir/redis/limit-admin.ts'
import { type AskedLimits, findAskedLimits, type LimitOptions } from '../limits/asked-limits.ts'
import { reportLimits } from '../limits/limit-report.ts'
import { limitTable } from '../limits/limit-table.ts'
import { withLimitAdmin } from '../limits/open-limit-admin.ts'
import type { Surroundings } from '../project.ts'

/** How the limits of a subject stand. Changes nothing. */
export async function peekLimits(options: LimitOptions, around: Surroundings): Promise<void> {
  const asked = findAskedLimits(options)
  const limits = await withLimitAdmin(around, options.data, (admin) => reportLimits(admin, asked, 1))
  if (options.json) around.print(JSON.stringify({ subject: asked.subject.id, limits }))
  else around.print(limits.length === 0 ? 'No limit applies.' : limitTable(limits))
}

/** Why a limit is left as it is although it applies; undefined when it may be changed. */
function whyLeft({ by }: Limit, { ip, limit }: LimitOptions): string | undefined {
  if (isOfOneSubject(by)) return undefined
  const isByAddress = by.some(({ kind }) => kind === 'ip')
  if (isByAddress) return ip === undefined ? 'counts by address: name it with --ip' : undefined
  return limit === undefined ? 'counts all subjects together: name it with --limit' : undefined
}

interface Changed {
  readonly subject: string
  readonly changed: readonly { readonly name: string; readonly keys: number }[]
  readonly left: readonly { readonly name: string; readonly because: string }[]
}

type Change = (admin: LimitAdmin, keys: readonly string[]) => Promise<number>

async function changeEach(admin: LimitAdmin, asked: AskedLimits, options: LimitOptions, change: Change) {
  const changed: { name: string; keys: number }[] = []
  const left: { name: string; because: string }[] = []
  for (const { limit } of asked.limits) {
    const { name } = limit
    const why = whyLeft(limit, options)
    const found = why === undefined ? await admin.find(limit, asked.scope) : undefined
    if (found === undefined) {
      left.push({ name, because: why ?? 'counts by address: name it with --ip' })
      continue
    }
    changed.push({ name, keys: await change(admin, found.keys) })
    if (!found.complete) left.push({ name, because: 'has more counts than one run looks after: run it again' })
  }
  return { subject: asked.subject.id, changed, left }
}

function say({ subject, changed, left }: Changed, verb: string, around: Surroundings): void {
  for (const { name, keys } of changed)
    around.print(`${verb} ${name} of ${subject}: ${keys} ${keys === 1 ? 'key' : 'keys'} removed`)
  for (const { name, because } of left) around.print(`left ${name} as it is: it ${because}`)
}

async function run(options: LimitOptions, around: Surroundings, verb: string, change: Change): Promise<void> {
  const asked = findAskedLimits(options)
  const result = await withLimitAdmin(around, options.data, (admin) => changeEach(admin, asked, options, change))
  if (options.json) around.print(JSON.stringify(result))
  else say(result, verb, around)
}

/** Forgets what was counted, blocks included. Processes that remember a denial hold to it for at most two seconds more. */
export const resetLimits = (options: LimitOptions, around: Surroundings): Promise<void> =>
  run(options, around, 'reset', (admin, keys) => admin.reset(keys))

/** Lets in who was shut out; what was counted stays counted. */
export const unblockLimits = (options: LimitOptions, around: Surroundings): Promise<void> =>
  run(options, around, 'unblocked', (admin, keys) => admin.unblock(keys))
