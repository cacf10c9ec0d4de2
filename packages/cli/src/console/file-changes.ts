import type { Applied } from '@weir/api/policy.ts'

type FileChange = Applied['changes'][number]

const signs = { create: '+', update: '~', delete: '-', keep: '=' } as const

const shown = (value: unknown) => (value === undefined ? 'none' : JSON.stringify(value))

/** `size: 100 → 200, block: none → "10m"`: what of it differs. */
function differences({ before, after }: FileChange): string {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])]
  return names
    .filter((name) => JSON.stringify(before?.[name]) !== JSON.stringify(after?.[name]))
    .map((name) => `${name}: ${shown(before?.[name])} → ${shown(after?.[name])}`)
    .join(', ')
}

function detail(change: FileChange): string {
  if (change.action === 'create') return JSON.stringify(change.after)
  if (change.action === 'update') return differences(change) || 'its place'
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
