import type { AuditRecord } from '@weir/policy-feed/policy-feed.ts'

/** Changes that are kept, here and in the topic: years of edits by hand, and about 5 MB in memory. */
const changesMax = 10_000
/** Old records that one change takes away; more than one, so that what a stop left over is caught up with. */
const dropPerChange = 20

/** Returns the first line of the audit record of an applied file, which names the file's revision. */
export const fileLine = (revision: string) => ({ what: 'put', kind: 'policy', name: revision }) as const

/** The changes that the topic holds, in their order. */
export class AuditLog {
  readonly #entriesMax: number
  readonly #entries: AuditRecord[] = []
  readonly #known = new Set<string>()
  #file: { readonly id: string; readonly revision: string } | undefined

  constructor(entriesMax = changesMax) {
    this.#entriesMax = entriesMax
  }

  /** Revision of the file that was applied last; undefined for none. */
  get fileRevision(): string | undefined {
    return this.#file?.revision
  }

  /** Forgets everything: the topic is read from its beginning, and may be another one. */
  clear(): void {
    this.#entries.length = 0
    this.#known.clear()
    this.#file = undefined
  }

  /** Adds a change; one that was added before stays one change. */
  add(entry: AuditRecord): void {
    if (this.#known.has(entry.id)) return
    this.#known.add(entry.id)
    this.#entries.push(entry)
    const [first] = entry.summary
    if (first?.kind === 'policy') this.#file = { id: entry.id, revision: first.name }
  }

  /** Returns whether the change of this id was applied, as far back as the log goes. An overtaken change was not. */
  has(id: string): boolean {
    return this.#known.has(id)
  }

  /** The newest first, from the first one older than `before`; from the newest without. */
  page(before: string | undefined, limit: number): readonly AuditRecord[] {
    // Without a line it has changed nothing: it wrote the policy again after an overtaken change.
    const older = this.#entries.filter(({ id, total }) => total > 0 && (before === undefined || id < before))
    return older.toSorted((a, b) => (a.id < b.id ? 1 : -1)).slice(0, limit)
  }

  /**
   * Returns ids beyond the newest that are kept; they are forgotten here, and to be deleted in the topic. The file
   * applied last is never among them: a start after ten thousand edits would take the file for a new one, and undo
   * them.
   */
  takeSurplus(): readonly string[] {
    const surplus = Math.min(Math.max(0, this.#entries.length - this.#entriesMax), dropPerChange)
    const oldest = this.#entries.splice(0, surplus)
    this.#entries.unshift(...oldest.filter(({ id }) => id === this.#file?.id))
    const dropped = oldest.map(({ id }) => id).filter((id) => id !== this.#file?.id)
    for (const id of dropped) this.#known.delete(id)
    return dropped
  }
}
