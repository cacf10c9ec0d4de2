import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import { afterEach, describe, expect, it } from 'vitest'
import { exactly, type Played, playScenario, type Scene } from '../support/failure/scenario.ts'
import { type Stack, startStack } from '../support/failure/stack.ts'

/** Slow for a disk, and so it is written to around the main thread. */
const diskMs = 25
const toldWithinMs = 500

let stack: Stack
afterEach(() => stack?.close())

/** Kills the ingress. The next one has a disk that is slow, and stalls for that time at each SIGUSR2. */
async function killOntoSlowDisk(stallMs: number): Promise<void> {
  const slow = join(projectRoot, 'test', 'support', 'failure', 'slow-disk.ts')
  const before = stack.pid('ingress')
  stack.killInto('ingress', [
    { NODE_OPTIONS: `--import=${slow}`, WEIR_TEST_DISK_MS: String(diskMs), WEIR_TEST_STALL_MS: String(stallMs) },
  ])
  await stack.backAfter('ingress', before)
}

async function startOnSlowDisk(stallMs: number): Promise<void> {
  stack = await startStack({ oneOfEach: true })
  await killOntoSlowDisk(stallMs)
}

/** When the ingress said so, in milliseconds since the epoch. */
const saidAt = (what: string): number[] =>
  readFileSync(join(stack.dir, 'logs', 'ingress.log'), 'utf8')
    .split('\n')
    .filter((line) => line.includes(what))
    .map((line) => Date.parse(/"time":"([^"]+)"/.exec(line)?.[1] ?? ''))

const stalls = () => saidAt('the disk stalls')
const told = () => saidAt('the journal could not be written')

/** Of all answers that came since. */
const longestMs = ({ ledger }: Played, sinceMs: number): number =>
  Math.max(...ledger.filter(({ atMs }) => atMs > sinceMs).map(({ latencyUs }) => latencyUs / 1_000))

async function stall({ load }: Scene): Promise<void> {
  const before = stalls().length
  stack.signal('ingress', 'SIGUSR2')
  await load.forMs(1_500)
  expect(stalls()).toHaveLength(before + 1)
}

describe('a slow disk', () => {
  it('60 stops of the ingress: none takes the disk for a stalled one, and all is answered with an id', async () => {
    await startOnSlowDisk(0)
    const { row } = await playScenario(stack, {
      fault: `60 stops of an ingress whose disk takes ${diskMs} ms`,
      perSecond: 300,
      async strike({ load, random }) {
        for (let stops = 0; stops < 60; stops += 1) {
          await load.forMs(random.integer(50, 150))
          stack.signal('ingress', 'SIGSTOP')
          await load.forMs(random.integer(300, 700))
          stack.signal('ingress', 'SIGCONT')
        }
      },
    })
    process.stdout.write(`  stalls told: ${told().length}\n`)
    expect([told().length, row.unrecorded]).toEqual([0, 0])
    expect(row).toEqual(exactly(row))
  })

  it('20 stalls of 600 ms: each is told within 500 ms, no request waits longer, and gaps count what had no id', async () => {
    await startOnSlowDisk(600)
    let beganMs = 0
    const played = await playScenario(stack, {
      fault: `a disk of ${diskMs} ms stalls for 600 ms, 20 times`,
      perSecond: 300,
      async strike(scene) {
        beganMs = scene.load.progress.elapsedMs
        for (let times = 0; times < 20; times += 1) await stall(scene)
      },
    })
    const { row } = played
    const after = stalls().map((atMs) => Math.min(...told().filter((toldMs) => toldMs >= atMs)) - atMs)
    const longest = longestMs(played, beganMs)
    process.stdout.write(`  told after ${after.join(', ')} ms; the longest answer took ${longest.toFixed(0)} ms\n`)
    expect(after).toHaveLength(20)
    expect(Math.max(...after, longest)).toBeLessThanOrEqual(toldWithinMs)
    expect(row.unrecorded).toBeGreaterThan(0)
    expect(row).toEqual({ ...exactly(row), uncounted: 0 })
  })

  it('kill -9 in stalls, after answers that came in them: each answer with an id is a row, and the others said that they are none', async () => {
    await startOnSlowDisk(2_000)
    const { row, ledger } = await playScenario(stack, {
      fault: `kill -9 of the ingress in stalls of a disk of ${diskMs} ms, 5 times`,
      perSecond: 300,
      async strike({ load }) {
        for (let kills = 0; kills < 5; kills += 1) {
          const { unrecorded } = load.progress
          stack.signal('ingress', 'SIGUSR2')
          await load.until('answers in the stall', (now) => now.unrecorded > unrecorded + 20, 30_000)
          await killOntoSlowDisk(2_000)
          await load.forMs(500)
        }
      },
    })
    const statuses = new Set(ledger.filter(({ id }) => id === '').map(({ status }) => status))
    process.stdout.write(`  statuses of the ${row.unrecorded} answers without an id: ${[...statuses].join()}\n`)
    expect([...statuses]).toEqual([503])
    expect(row.missing).toBe(0)
    expect(row).toEqual(exactly(row))
  })
})
