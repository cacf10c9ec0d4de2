import { afterEach, describe, expect, it } from 'vitest'
import { mountJournalDisk } from '../support/failure/journal-disk.ts'
import { exactly, playScenario } from '../support/failure/scenario.ts'
import { type Stack, startStack } from '../support/failure/stack.ts'

/** Smaller than the journal's bound, so that the disk is full first; at 2,000 a second it takes about a minute of Kafka's absence. */
const diskMegabytes = 48

let stack: Stack | undefined
let unmount: (() => void) | undefined
afterEach(async () => {
  await stack?.close()
  stack = undefined
})

describe('a disk that is full under the journal', () => {
  it.for(['refuse'])(
    '%s: what cannot be written is not answered as decided, and what was answered is counted once',
    async (onFull) => {
      stack = await startStack({
        environment: { WEIR_JOURNAL_EPHEMERAL: '1', WEIR_ON_JOURNAL_FULL: onFull },
        onDir: (dir) => {
          unmount = mountJournalDisk(dir, diskMegabytes)
        },
        beforeRemoval: () => unmount?.(),
      })
      const up = stack
      const { row, load } = await playScenario(up, {
        fault: 'the disk under the journal full while Kafka is down',
        perSecond: 3_000,
        async strike({ load: running }) {
          await up.hold('kafka')
          await running.until('the disk is full', ({ unrecorded }) => unrecorded > 100, 180_000)
          await running.forMs(3_000)
          await up.release('kafka')
          const { answered } = running.progress
          await running.until('there is room again', (now) => now.answered > answered + 1_000, 60_000)
        },
      })
      expect(row).toEqual(exactly(row))
      expect(load.progress.unrecorded).toBeGreaterThan(100)
    },
  )
})
