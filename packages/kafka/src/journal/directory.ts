import type { HeldDirectory, JournalTopic } from './ports.ts'

/** Makes and holds a directory of a new journal under `base`. It shows itself to others only when it is held. */
export async function createDirectory(base: string, _topics: readonly JournalTopic[]): Promise<HeldDirectory> {
  throw new Error(`not there yet: ${base}`)
}

/** Whether a process holds the directory. Only a socket that refuses, or is not there, says no: a stopped process is alive. */
export async function isHeld(path: string): Promise<boolean> {
  throw new Error(`not there yet: ${path}`)
}

/**
 * Takes every dead directory under `base` over into `into`, each by one rename, which one of several adopters wins; also what
 * they had adopted themselves. Says the paths of those new to it.
 */
export async function adoptDead(base: string, _into: HeldDirectory): Promise<string[]> {
  throw new Error(`not there yet: ${base}`)
}

/** Paths of the directories that have been adopted into this one. */
export function adoptedIn(path: string): string[] {
  throw new Error(`not there yet: ${path}`)
}

/** Removes a directory of which Kafka has everything; refuses while it holds adopted ones. */
export function removeDirectory(path: string): void {
  throw new Error(`not there yet: ${path}`)
}

/** The partition counts last written down under `base`, by topic name, for a start while Kafka is away. */
export function savedPartitions(base: string): ReadonlyMap<string, number> {
  throw new Error(`not there yet: ${base}`)
}
