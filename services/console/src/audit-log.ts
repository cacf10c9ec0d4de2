import type { AuditRecord } from '@weir/policy-feed/policy-feed.ts'

/** Changes that are kept, here and in the topic: years of edits by hand, and about 5 MB in memory. */
const changesMax = 10_000
/** Old records that one change takes away; more than one, so that what a stop left over is caught up with. */
const dropPerChange = 20

/** The changes that the topic tells of, in their order. */
export interface AuditLog {
  /** The topic is told from its beginning, and may be another one. */
  clear(): void
  /** Told again, a change is the same one. */
  add(entry: AuditRecord): void
  /** Whether the change of this id was taken over, lately. An overtaken one was not. */
  has(id: string): boolean
  /** Newest first, from the first one older than `before`; from the newest without. */
  page(before: string | undefined, limit: number): readonly AuditRecord[]
  /**
   * Ids beyond the newest that are kept; they are forgotten here, and to be deleted in the topic. Never that of the file
   * applied last: a start after ten thousand edits would take the file for a new one, and undo them.
   */
  takeSurplus(): readonly string[]
  /** Revision of the file that was applied last; undefined for none. */
  readonly fileRevision: string | undefined
}

/** What a change says of itself when it is an applied file: its first line, named by the revision of the file. */
export const fileLine = (revision: string) => ({ what: 'put', kind: 'policy', name: revision }) as const

export function createAuditLog(kept = changesMax): AuditLog {
  const entries: AuditRecord[] = []
  const known = new Set<string>()
  let fileRevision: string | undefined
  let fileId: string | undefined
  return {
    add(entry) {
      if (known.has(entry.id)) return
      known.add(entry.id)
      entries.push(entry)
      const [first] = entry.summary
      if (first?.kind !== 'policy') return
      fileRevision = first.name
      fileId = entry.id
    },
    clear() {
      entries.length = 0
      known.clear()
      fileRevision = undefined
      fileId = undefined
    },
    has: (id) => known.has(id),
    page(before, limit) {
      // Without a line it has changed nothing: it wrote the policy again after an overtaken change.
      const older = entries.filter(({ id, total }) => total > 0 && (before === undefined || id < before))
      return older.toSorted((a, b) => (a.id < b.id ? 1 : -1)).slice(0, limit)
    },
    takeSurplus() {
      const surplus = Math.min(Math.max(0, entries.length - kept), dropPerChange)
      const oldest = entries.splice(0, surplus)
      entries.unshift(...oldest.filter(({ id }) => id === fileId))
      const dropped = oldest.map(({ id }) => id).filter((id) => id !== fileId)
      for (const id of dropped) known.delete(id)
      return dropped
    },
    get fileRevision() {
      return fileRevision
    },
  }
}
