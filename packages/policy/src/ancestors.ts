import type { Subject } from './policy.ts'

/** The subjects above one, the nearest first. */
export function ancestorsOf({ parent }: Pick<Subject, 'parent'>): readonly Subject[] {
  const ancestors: Subject[] = []
  for (let above = parent; above !== undefined; above = above.parent) ancestors.push(above)
  return ancestors
}
