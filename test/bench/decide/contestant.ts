/** How many decisions are asked for at one moment: one by one, or as a busy server has them. */
export const togetherMax = 16
export type Together = 1 | typeof togetherMax

/** One way to limit, with connections of its own. */
export interface Contestant {
  readonly label: string
  /** One contestant's ways of being asked share keys, and the bytes of them. */
  readonly together: Together
  /** Limits that one decision takes. */
  readonly limits: number
  /** What its keys look like, as a pattern of SCAN; undefined when it has none. */
  readonly keys: string | undefined
  /** Decides once for each subject, all asked for at once; rejects unless every one of them was charged. */
  decide(subjects: readonly string[]): Promise<void>
}

/** As many as keep a cache from having the one key at hand. */
const subjectCount = 2_000

/** Of the length that ids have. */
export const subjects: readonly string[] = Array.from(
  { length: subjectCount },
  (_, index) => `customer-${String(index).padStart(6, '0')}`,
)

/** A contestant asked one by one, and one asked for many at a time. */
export function bothWays(
  about: Pick<Contestant, 'label' | 'limits' | 'keys'>,
  decide: (subjects: readonly string[]) => Promise<void>,
): Contestant[] {
  return ([1, togetherMax] as const).map((together) => ({ ...about, together, decide }))
}

/** Large enough that nothing is refused, small enough for every algorithm. */
export const sizeMax = 50_000_000
/** Of an exact log, which keeps every admission, and of a bucket: more than a subject is asked for in a run. */
export const logSizeMax = 5_000
export const windowMs = 3_600_000

/** What cannot happen with these sizes; a limiter that refuses or gives up would look cheap. */
export function refuseToCount(label: string, what: string): never {
  throw new Error(`${label} was to charge every request, and answered: ${what}`)
}
