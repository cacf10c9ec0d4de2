import type { RecordBatch } from './record-batch.ts'

/** Handles a round; see ConsumeOptions. */
export type OnRound = (batches: readonly RecordBatch[]) => Promise<ReadonlyMap<RecordBatch, unknown>>

interface Gathered {
  readonly batch: RecordBatch
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** How long batches of other brokers are waited for, whose fetches end together; those of one come in one turn. */
const gatherMs = 25

/** Returns a handler of batches that hands them over in rounds, each with the batches that came together. */
export function gatherRounds(onRound: OnRound | undefined): (batch: RecordBatch) => Promise<void> {
  if (onRound === undefined) throw new Error('a consumer handles batches or rounds')
  let gathered: Gathered[] = []
  const play = async () => {
    const round = gathered
    gathered = []
    try {
      const faults = await onRound(round.map(({ batch }) => batch))
      for (const { batch, resolve, reject } of round) {
        if (faults.has(batch)) reject(faults.get(batch))
        else resolve()
      }
    } catch (error) {
      for (const { reject } of round) reject(error)
    }
  }
  return (batch) =>
    new Promise((resolve, reject) => {
      gathered.push({ batch, resolve, reject })
      if (gathered.length > 1) return
      if (batch.isOfSeveralBrokers) setTimeout(play, gatherMs)
      else setImmediate(play)
    })
}
