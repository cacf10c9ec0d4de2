import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterEach, describe, expect, it } from 'vitest'
import { mountJournalDisk } from '../support/failure/journal-disk.ts'
import { exactly, playScenario } from '../support/failure/scenario.ts'
import { type Stack, startStack } from '../support/failure/stack.ts'
import { readMetric } from '../support/read-metric.ts'

/**
 * Smaller than the journal's bound, so that the disk is full first; at 1,500 a second it takes under a minute of
 * Kafka's absence.
 */
const diskMegabytes = 48
const fullDeadlineMs = 180_000

let stack: Stack | undefined
let unmount: (() => void) | undefined
afterEach(async () => {
  await stack?.close()
  stack = undefined
})

async function startOnSmallDisk(onFull: 'refuse' | 'admit'): Promise<Stack> {
  stack = await startStack({
    oneOfEach: true,
    environment: { WEIR_JOURNAL_EPHEMERAL: '1', WEIR_ON_JOURNAL_FULL: onFull },
    onDir: (dir) => {
      unmount = mountJournalDisk(dir, diskMegabytes)
    },
    beforeRemoval: () => unmount?.(),
  })
  return stack
}

describe('a disk that is full under the journal', () => {
  it('what cannot be written is not answered as decided; what was answered is counted once, refusals or their gaps too', async () => {
    const up = await startOnSmallDisk('refuse')
    const { row } = await playScenario(up, {
      fault: 'the disk under the journal full while Kafka is down',
      perSecond: 1_500,
      async strike({ load: running }) {
        await up.hold('kafka')
        await running.until('the disk is full', ({ unrecorded }) => unrecorded > 100, fullDeadlineMs)
        await running.forMs(3_000)
        const ready = await fetch(`${up.opsAddress('ingress')}/readyz`)
        const isFull = expect.stringContaining('journal: warning: no room for the next segment in WEIR_JOURNAL_DIR')
        expect([ready.status, await ready.text()]).toEqual([200, isFull])
        await up.release('kafka')
        const { answered } = running.progress
        await running.until('there is room again', (now) => now.answered > answered + 1_000, 60_000)
      },
    })
    expect(row).toEqual(exactly(row))
    expect(row.gaps).toBe(row.unrecorded)
    expect(row.unrecorded).toBeGreaterThan(100)
  })

  it('where it admits nevertheless, gaps say exactly how many answered decisions have no record', async () => {
    const up = await startOnSmallDisk('admit')
    const gaps = () => readMetric(up.opsAddress('ingress'), 'weir_journal_gaps_total')
    const { row, ledger, load } = await playScenario(up, {
      fault: 'the same, and the journal admits when it is full',
      perSecond: 1_500,
      async strike({ load: running }) {
        await up.hold('kafka')
        const isFull = async () => (await gaps()) > 1_000
        expect(await waitUntil(isFull, { deadlineMs: fullDeadlineMs, everyMs: 500 })).toBe(true)
        await up.release('kafka')
        await running.forMs(3_000)
      },
    })
    expect(row).toEqual(exactly(row))
    expect(ledger.filter(({ reason }) => reason === 'journal_full')).toEqual([])
    expect(load.progress.undecided).toEqual({})
    expect(row.unrecorded).toBeGreaterThan(1_000)
    expect(row.gaps).toBe(row.unrecorded)
  })
})
