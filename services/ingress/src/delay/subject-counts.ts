/** How many of something each subject has. Knows only those that have any. */
export class SubjectCounts {
  readonly #counts = new Map<string, number>()

  of(subject: string): number {
    return this.#counts.get(subject) ?? 0
  }

  /** Of the subject, by so many more or fewer. */
  add(subject: string, more: 1 | -1): void {
    const count = this.of(subject) + more
    if (count > 0) this.#counts.set(subject, count)
    else this.#counts.delete(subject)
  }
}
