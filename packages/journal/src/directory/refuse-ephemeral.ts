import { mkdirSync, statfsSync } from 'node:fs'
import { WeirError } from '@weir/core/errors.ts'

/**
 * File systems, by their magic numbers, that are gone with the machine or the container; what a process wrote there was
 * not kept.
 */
const ephemeral: ReadonlyMap<number, string> = new Map([
  [0x01021994, 'tmpfs'],
  [0x858458f6, 'ramfs'],
  [0x794c7630, 'overlay'],
])

/**
 * Refuses a base directory whose disk does not outlive what happens to processes, unless it `isAllowed`; makes it if it
 * is missing.
 */
export function refuseEphemeral(
  base: string,
  isAllowed: boolean,
  typeOf = (path: string) => statfsSync(path).type,
): void {
  try {
    mkdirSync(base, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new WeirError(
      'JOURNAL_UNUSABLE',
      `cannot make ${base}: ${String(error)}. Set WEIR_JOURNAL_DIR to a directory that this user may write.`,
      error,
    )
  }
  const name = ephemeral.get(typeOf(base))
  if (name === undefined || isAllowed) return
  throw new WeirError(
    'JOURNAL_UNUSABLE',
    `${base} is on ${name}, which is gone with the container or the machine, and with it every decision that Kafka does not have yet. Mount a disk there, or accept that with WEIR_JOURNAL_EPHEMERAL=1.`,
  )
}
