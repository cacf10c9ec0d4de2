import type { JournalState } from './journal-state.ts'
import type { JournalReader } from './ports.ts'

/**
 * Reads a directory: with `state` a live one, up to what is committed there; without, a dead one, up to its last whole frame, which
 * nobody may write any more.
 */
export function openReader(path: string, _state?: JournalState): JournalReader {
  throw new Error(`not there yet: ${path}`)
}
