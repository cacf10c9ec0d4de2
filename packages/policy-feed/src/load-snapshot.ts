import type { KafkaLog } from '@weir/kafka/connect.ts'
import type { PolicyFault } from '@weir/policy/entities.ts'
import { createPolicyState } from '@weir/policy/state/policy-state.ts'
import type { HeldPolicy } from './kept-snapshot.ts'
import { readSnapshot } from './snapshot-file.ts'

export interface LoadedSnapshot extends HeldPolicy {
  /** Parts that do not fit the rest. */
  readonly leftOut: readonly PolicyFault[]
}

/** The policy of a snapshot; undefined, with a line in the log, for one that is of no use. */
export async function loadSnapshot(path: string, log: KafkaLog): Promise<LoadedSnapshot | undefined> {
  const leave = (fields: object) => {
    log.warn({ path, ...fields }, 'policy snapshot left out')
    return undefined
  }
  const read = await readSnapshot(path)
  if (read.kind === 'none') return undefined
  if (read.kind === 'unusable') return leave({ reason: read.reason })
  const { mark, heardMs, entities } = read.snapshot
  const state = createPolicyState()
  try {
    const loaded = state.load(entities())
    return loaded.kind === 'loaded' ? { state, mark, heardMs, leftOut: loaded.leftOut } : leave(loaded)
  } catch (error) {
    return leave({ err: error }) // a line that cannot be read, or entities that no state ever held together
  }
}
