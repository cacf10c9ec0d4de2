import type { Applied } from '@weir/api/policy.ts'
import { count } from '@weir/core/format.ts'

type FileChange = Applied['changes'][number]

const signs = { create: '+', update: '~', delete: '-', keep: '=' } as const

/** The settings in which two bodies differ: `size: 100 → 200`; `none` stands for what is not there. */
export function differences({ before, after }: Pick<FileChange, 'before' | 'after'>, none: string): readonly string[] {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])]
  return names.flatMap((name) => {
    const [was = none, is = none] = [before, after].map((body) => JSON.stringify(body?.[name]))
    return was === is ? [] : [`${name}: ${was} → ${is}`]
  })
}

function detail(change: FileChange): string {
  if (change.action === 'create') return JSON.stringify(change.after)
  if (change.action === 'update') return differences(change, 'none').join(', ') || 'its place'
  return change.action === 'keep' ? 'stays as the admin API has made it: the file is older' : ''
}

/** More entities of a kind that come or go are one line. */
const groupedFrom = 6
/** Names that such a line has; `--json` has all. */
const namesMax = 10

function groupLine({ action, kind }: FileChange, group: readonly FileChange[]): string {
  const names = group.slice(0, namesMax).map(({ name }) => name)
  const more = group.length > namesMax ? `, … and ${group.length - namesMax} more` : ''
  return `${signs[action]} ${group.length} × ${kind}  ${names.join(', ')}${more}`
}

/** Returns one line for each change, `~ limit minute  size: 100 → 200`, or for many of a kind that come or go. */
export function changeLines({ changes, created, updated, deleted }: Applied): string[] {
  const groups = Map.groupBy(changes, ({ action, kind }) => `${action} ${kind}`)
  const lines = [...groups.values()].flatMap((group) => {
    const [first] = group
    if (first !== undefined && first.action !== 'update' && group.length >= groupedFrom) return groupLine(first, group)
    return group.map((change) => `${signs[change.action]} ${change.kind} ${change.name}  ${detail(change)}`.trimEnd())
  })
  const left = created + updated + deleted - changes.filter(({ action }) => action !== 'keep').length
  return left > 0 ? [...lines, `… and ${left} more`] : lines
}

const verbs = { plan: ['to add', 'to change', 'to destroy'], done: ['added', 'changed', 'destroyed'] } as const

/** Returns the counts in words: `3 to add, 1 to change, 0 to destroy`, or once it is done `3 added, …`. */
export const countsText = ({ created, updated, deleted }: Applied, tense: keyof typeof verbs = 'done'): string =>
  [created, updated, deleted].map((counted, at) => `${count(counted)} ${verbs[tense][at]}`).join(', ')
