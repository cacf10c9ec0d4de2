/**
 * Whose rows a caller may read: everybody's, or those of some subjects. The console makes it of the caller's
 * credential, in one place; every query of usage, outcomes and alerts takes one, and writes it into its SQL itself.
 */
export class Reach {
  /** For callers who are limited to no subject. */
  static readonly everybody = new Reach(undefined)

  /** The rows of these subjects; an empty list matches no rows. */
  static of(subjects: readonly string[]): Reach {
    return new Reach(subjects)
  }

  /** Private members make the type nominal: no object that only looks like a Reach is one. */
  readonly #subjects: readonly string[] | undefined

  private constructor(subjects: readonly string[] | undefined) {
    this.#subjects = subjects
  }

  /** The subjects that it is limited to; undefined for everybody. */
  get subjects(): readonly string[] | undefined {
    return this.#subjects
  }

  /** Whether what is not of one subject alone is hidden: limits in shadow, what others share, and how Weir runs. */
  get isOwn(): boolean {
    return this.#subjects !== undefined
  }

  /** Whether it has all of these subjects. */
  covers(subjects: readonly string[]): boolean {
    const own = this.#subjects
    return own === undefined || subjects.every((subject) => own.includes(subject))
  }
}
