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

  /**
   * The rows of these subjects, and of all that were below one of them when the rows were made; `isBelow` says who is
   * now.
   */
  static ofTrees(subjects: readonly string[], isBelow: (subject: string) => boolean): Reach {
    return new Reach(subjects, isBelow)
  }

  /** Private members make the type nominal: no object that only looks like a Reach is one. */
  readonly #subjects: readonly string[] | undefined
  readonly #isBelow: ((subject: string) => boolean) | undefined

  private constructor(subjects: readonly string[] | undefined, isBelow?: (subject: string) => boolean) {
    this.#subjects = subjects
    this.#isBelow = isBelow
  }

  /** The subjects that it is limited to; undefined for everybody. */
  get subjects(): readonly string[] | undefined {
    return this.#subjects
  }

  /** Whether what is not of one subject alone is hidden: limits in shadow, what others share, and how Weir runs. */
  get isOwn(): boolean {
    return this.#subjects !== undefined
  }

  /** Whether rows of those below its subjects are in it. */
  get hasTrees(): boolean {
    return this.#isBelow !== undefined
  }

  /** Whether each of these is now one of its subjects, or below one. */
  coversNow(subjects: readonly string[]): boolean {
    return subjects.every((subject) => this.covers([subject]) || this.#isBelow?.(subject) === true)
  }

  /** Whether it has all of these subjects. */
  covers(subjects: readonly string[]): boolean {
    const own = this.#subjects
    return own === undefined || subjects.every((subject) => own.includes(subject))
  }
}
