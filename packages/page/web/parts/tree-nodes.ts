import type { UsageRow } from '@weir/api/usage.ts'

type UsedRow = Partial<Pick<UsageRow, 'subject' | 'parents' | 'cost' | 'denied'>> & { readonly quantity?: string }

/** A subject of a tree, with what it and everyone below it used. */
export interface TreeNode {
  readonly subject: string
  readonly depth: number
  used: bigint
  denied: number
}

interface Branch extends TreeNode {
  readonly below: Map<string, Branch>
}

const branch = (subject: string, depth: number): Branch => ({ subject, depth, used: 0n, denied: 0, below: new Map() })

/**
 * The tree of a subject, each under its parent, and who used most first; `rows` are usage by subject and parents.
 * Who was moved stands under each parent with what it used there.
 */
export function nodesOf(rows: readonly UsedRow[], id: string, unit: string): readonly TreeNode[] {
  const top = branch(id, 0)
  for (const row of rows) {
    const above: readonly string[] = JSON.parse(row.parents ?? '[]')
    const path = [row.subject ?? '', ...above].slice(0, row.subject === id ? 0 : above.indexOf(id) + 1).reverse()
    let at = top
    const nodes = [top]
    for (const name of path) {
      const next = at.below.get(name) ?? branch(name, at.depth + 1)
      at.below.set(name, next)
      nodes.push(next)
      at = next
    }
    for (const node of nodes) {
      node.used += BigInt((unit === '' ? row.cost : row.quantity) ?? 0)
      node.denied += Number(row.denied ?? 0)
    }
  }
  const flat = ({ below, ...node }: Branch): readonly TreeNode[] => [
    node,
    ...[...below.values()].toSorted((a, b) => Number(b.used - a.used)).flatMap(flat),
  ]
  return flat(top)
}
