import type { UsageRow } from '@weir/api/usage.ts'

type UsedRow = Partial<Pick<UsageRow, 'subject' | 'parent' | 'cost' | 'denied'>> & { readonly quantity?: string }

/** A subject of a tree, with what it and everyone below it used. */
export interface TreeNode {
  readonly subject: string
  readonly depth: number
  readonly used: bigint
  readonly denied: number
}

/**
 * The tree of a subject, each under its parent, and who used most first; `rows` are usage by subject and parent.
 * Who was moved stands under both parents, and all below it under one of them: each row counts once.
 */
export function nodesOf(rows: readonly UsedRow[], id: string, unit: string): readonly TreeNode[] {
  const [own, others] = [rows.filter(({ subject }) => subject === id), rows.filter(({ subject }) => subject !== id)]
  const below = Map.groupBy(others, ({ parent = '' }) => parent)
  const isSilent = (parent: string) => !others.some(({ subject }) => subject === parent)
  const usedOf = (row: UsedRow) => BigInt((unit === '' ? row.cost : row.quantity) ?? 0)
  const walk = (subject: string, of: readonly UsedRow[], depth: number): readonly TreeNode[] => {
    const children = Map.groupBy(below.get(subject) ?? [], (row) => row.subject ?? '')
    below.delete(subject)
    const trees = [...children].map(([child, its]) => walk(child, its, depth + 1))
    // A team that calls nothing itself has no row of its own: it stands right below the top.
    const left = depth > 0 ? [] : [...[...below.keys()].filter(isSilent), ...below.keys()]
    for (const parent of left) if (below.has(parent)) trees.push(walk(parent, [], 1))
    const tops = trees.flatMap(([top]) => top ?? [])
    const node = {
      subject,
      depth,
      used: of.reduce((sum, row) => sum + usedOf(row), 0n) + tops.reduce((sum, { used }) => sum + used, 0n),
      denied:
        of.reduce((sum, row) => sum + Number(row.denied ?? 0), 0) + tops.reduce((sum, { denied }) => sum + denied, 0),
    }
    return [node, ...trees.toSorted(([a], [b]) => Number((b?.used ?? 0n) - (a?.used ?? 0n))).flat()]
  }
  return walk(id, own, 0)
}
