import { type ChangedLimits, changeLimits, type LimitChange } from '@weir/redis/change-limits.ts'
import { askLimits, type LimitOptions } from '../limits/asked-limits.ts'
import { reportLimits } from '../limits/limit-report.ts'
import { limitTable } from '../limits/limit-table.ts'
import { withLimitAdmin } from '../limits/open-limit-admin.ts'
import type { Surroundings } from '../project.ts'

/** How the limits of a subject stand. Changes nothing. */
export async function peekLimits(options: LimitOptions, around: Surroundings): Promise<void> {
  const asked = await askLimits(options, around)
  const limits = await withLimitAdmin(around, options.data, (admin) => reportLimits(admin, asked, 1))
  if (options.json) around.print(JSON.stringify({ subject: asked.subject.id, limits }))
  else around.print(limits.length === 0 ? 'No limit applies.' : limitTable(limits))
}

function say({ subject, changed, left }: ChangedLimits, verb: string, around: Surroundings): void {
  for (const { name, keys } of changed)
    around.print(`${verb} ${name} of ${subject}: ${keys} ${keys === 1 ? 'key' : 'keys'} removed`)
  for (const { name, because } of left) around.print(`left ${name} as it is: it ${because}`)
}

async function run(options: LimitOptions, around: Surroundings, verb: string, change: LimitChange): Promise<void> {
  const asked = await askLimits(options, around)
  const result = await withLimitAdmin(around, options.data, (admin) => changeLimits(admin, asked, options, change))
  if (options.json) around.print(JSON.stringify(result))
  else say(result, verb, around)
}

/** Forgets what was counted, blocks included. Processes that remember a denial hold to it for at most two seconds more. */
export const resetLimits = (options: LimitOptions, around: Surroundings): Promise<void> =>
  run(options, around, 'reset', 'reset')

/** Lets in who was shut out; what was counted stays counted. */
export const unblockLimits = (options: LimitOptions, around: Surroundings): Promise<void> =>
  run(options, around, 'unblocked', 'unblock')
