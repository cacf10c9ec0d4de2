import type { Applied } from '@weir/api/policy.ts'

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

/** Returns one line for each change: `~ limit minute  size: 100 → 200`. */
export function changeLines({ changes, created, updated, deleted }: Applied): string[] {
  const lines = changes.map((change) =>
    `${signs[change.action]} ${change.kind} ${change.name}  ${detail(change)}`.trimEnd(),
  )
  const left = created + updated + deleted - changes.filter(({ action }) => action !== 'keep').length
  return left > 0 ? [...lines, `… and ${left} more`] : lines
}

/** Returns the counts in words: `3 created, 1 updated, none deleted`. */
export const countsText = ({ created, updated, deleted }: Applied): string =>
  [
    [created, 'created'],
    [updated, 'updated'],
    [deleted, 'deleted'],
  ]
    .map(([count, what]) => `${count === 0 ? 'none' : count} ${what}`)
    .join(', ')
