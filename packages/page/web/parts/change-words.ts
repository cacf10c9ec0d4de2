import type { ListedChange } from '@weir/api/policy.ts'

/** One line of a change. */
export const wordsOf = ({ what, kind, name }: ListedChange['summary'][number]) =>
  kind === 'policy' ? `applied the file ${name.slice(0, 8)}` : `${what} ${kind} ${name}`
const shownMax = 4

/** A change in a line. */
export const describeChange = ({ summary, total }: Pick<ListedChange, 'summary' | 'total'>): string =>
  `${summary.slice(0, shownMax).map(wordsOf).join(', ')}${total > shownMax ? `, and ${total - shownMax} more` : ''}`
