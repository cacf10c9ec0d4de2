import type { DecisionLog } from '../ports.ts'

type Line = Readonly<Record<string, unknown>> & { readonly key: string }

/** A log that keeps what it takes, and can be full or have a stalled disk: for tests of what stands before one. */
export interface MemoryDecisionLog extends DecisionLog {
  /** Decisions that were not taken. */
  missed: number
  /** In the order in which they were taken. */
  readonly records: Line[]
  /** Takes nothing. */
  isFull: boolean
  /** Takes what it is given, but the disk does not. */
  isStalled: boolean
  /** Takes what it is given, and the disk lets everybody wait for it until `endStall`. */
  isOverdue: boolean
  /** What has become of everything overdue. */
  endStall(isThere: boolean): void
  /** As the journal does with every sum after a second. */
  closeCoalesced(): void
}

/** Opens an empty log, whose disk works. */
export function createMemoryDecisionLog(): MemoryDecisionLog {
  const records: Line[] = []
  const waiting: PromiseWithResolvers<boolean>[] = []
  let closed = 0
  return {
    records,
    missed: 0,
    isFull: false,
    isStalled: false,
    isOverdue: false,
    append(key, openLine) {
      const line = JSON.parse(`${openLine}}`)
      if (this.isFull) this.missed += line.count
      else records.push({ key, ...line })
      return !this.isFull
    },
    openCoalesced(key, beforeCount, afterCount, latest = () => afterCount) {
      if (this.isFull) return undefined
      const at = records.length
      let count = 0
      const opened = closed
      const add = (more = 1) => {
        if (opened !== closed) return false
        count += more
        records[at] = { key, ...JSON.parse(`${beforeCount}${count}${latest()}}`) }
        return true
      }
      // Where records are, so that none is put in its place before it counts anything.
      records.push({ key })
      return { add, finallyWritten: () => this.finallyWritten() }
    },
    closeCoalesced() {
      closed += 1
    },
    writtenInTime() {
      return Promise.resolve(!this.isStalled && !this.isOverdue)
    },
    finallyWritten() {
      if (!this.isOverdue) return Promise.resolve(!this.isStalled)
      const overdue = Promise.withResolvers<boolean>()
      waiting.push(overdue)
      return overdue.promise
    },
    endStall(isThere) {
      this.isOverdue = false
      for (const { resolve } of waiting.splice(0)) resolve(isThere)
    },
  }
}
