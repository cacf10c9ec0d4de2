import type { Policy, Subject } from './policy.ts'

/** The subjects above one, the nearest first. */
export function ancestorsOf({ parent }: Pick<Subject, 'parent'>): readonly Subject[] {
  const ancestors: Subject[] = []
  for (let above = parent; above !== undefined; above = above.parent) ancestors.push(above)
  return ancestors
}

/** Says which is the topmost of each subject's tree; undefined for a subject that the policy does not have. */
export function rootsOf({ subjects }: Pick<Policy, 'subjects'>): (id: string) => string | undefined {
  return function rootOf(id) {
    const subject = subjects.get(id)
    return subject && (ancestorsOf(subject).at(-1)?.id ?? id)
  }
}
