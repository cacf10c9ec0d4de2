import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, test, vi } from 'vitest'
import { readDead, TemporaryBase } from '../testing/temporary-journal.ts'
import { adoptedIn, adoptOrphans, journalsIn, removeDirectory } from './directory.ts'
import { isLocked } from './socket-lock.ts'

// The disk is the real one; other work on the machine may slow it down.
vi.setConfig({ testTimeout: 60_000 })

const program = join(import.meta.dirname, '../testing/journal-process.ts')

/** A process that writes a journal, and what it has said. */
class JournalProcess {
  readonly #child: ChildProcess
  #said = ''

  constructor(base: string, count: number, crashAt = '') {
    this.#child = spawn(process.execPath, [program, base, String(count), crashAt], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    this.#child.stdout?.on('data', (some: Buffer) => {
      this.#said += some.toString()
    })
  }

  get journal(): string {
    return /^journal (\S+)$/m.exec(this.#said)?.[1] ?? ''
  }

  /** Records, and additions to sums, that it was told are in the journal. */
  get written(): { readonly records: number; readonly added: number } {
    const all = [...this.#said.matchAll(/^written (\d+) (\d+)$/gm)]
    return { records: Number(all.at(-1)?.[1] ?? 0), added: all.length }
  }

  async untilSaid(text: string): Promise<void> {
    const isSaid = await waitUntil(() => this.#said.includes(text), { deadlineMs: 20_000, everyMs: 5 })
    if (isSaid !== true) throw new Error(`never said ${text}: ${this.#said.slice(-200)}`)
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name)
  }

  async kill(): Promise<void> {
    const closed = once(this.#child, 'close')
    this.#child.kill('SIGKILL')
    await closed
  }

  /** It kills itself. */
  async ended(): Promise<NodeJS.Signals | null> {
    if (this.#child.signalCode === null && this.#child.exitCode === null) await once(this.#child, 'close')
    return this.#child.signalCode
  }
}

/**
 * What a dead journal holds, with numbers without holes in every partition: records in all, and how much sums counted,
 * which say as much where they were closed.
 */
function holdings(path: string): { readonly records: Set<number>; readonly added: number } {
  const next = new Map<number, number>()
  const records = new Set<number>()
  let added = 0
  for (const { partition, seq, value } of readDead(path)) {
    expect(seq).toBe(next.get(partition) ?? 0)
    next.set(partition, seq + 1)
    const { n, count, last } = JSON.parse(value.toString())
    if (n === -1) {
      added += count
      expect([0, count]).toContain(last)
    } else {
      expect(records.has(n)).toBe(false)
      records.add(n)
    }
  }
  return { records, added }
}

test('Killed at any moment, a process leaves every record that was reported as written, once, and every count', async () => {
  await using base = new TemporaryBase()
  for (let round = 0; round < 4; round += 1) {
    const one = new JournalProcess(base.path, 0)
    await one.untilSaid('written')
    const target = one.written.records + round * 400 + ((round * 137) % 50)
    await waitUntil(() => one.written.records >= target, { deadlineMs: 10_000, everyMs: 1 })
    await one.kill()
    const { records, added } = holdings(join(base.path, one.journal))
    for (let n = 0; n < one.written.records; n += 1) expect(records.has(n)).toBe(true)
    expect(added).toBeGreaterThanOrEqual(one.written.added)
    expect(added).toBeLessThanOrEqual(one.written.added + 1)
    expect(records.size).toBeLessThanOrEqual(one.written.records + 5)
  }
})

for (const step of [
  'journal_written:40',
  'journal_segment:3',
  'journal_segment:1',
  'journal_shown',
  'journal_listening',
  'journal_made',
]) {
  test(`killed at ${step}, what was answered is there and the next process goes on`, async () => {
    await using base = new TemporaryBase()
    const one = new JournalProcess(base.path, 2_000, `ingress.${step}`)
    expect(await one.ended()).toBe('SIGKILL')
    const { directory } = await base.open()
    const adopted = await adoptOrphans(base.path, directory)
    const { records, added } = adopted[0] === undefined ? { records: new Set(), added: 0 } : holdings(adopted[0])
    for (let n = 0; n < one.written.records; n += 1) expect(records.has(n)).toBe(true)
    expect(added).toBeGreaterThanOrEqual(one.written.added)
    expect(journalsIn(base.path)).toEqual([directory.journal])
    for (const path of adopted) removeDirectory(path)
    expect(adoptedIn(directory.path)).toEqual([])
  })
}

test('A process that is stopped is alive: no other takes its directory, and it goes on', async () => {
  await using base = new TemporaryBase()
  const one = new JournalProcess(base.path, 1_000)
  try {
    await one.untilSaid('written')
    one.signal('SIGSTOP')
    const path = join(base.path, one.journal)
    // More questions than its queue holds, and nobody takes them.
    const answers = await Promise.all(Array.from({ length: 700 }, () => isLocked(path)))
    expect(answers.every((isAlive) => isAlive)).toBe(true)
    const { directory } = await base.open()
    expect(await adoptOrphans(base.path, directory)).toEqual([])
    one.signal('SIGCONT')
    await one.untilSaid('done')
  } finally {
    await one.kill()
  }
  expect(holdings(join(base.path, one.journal)).records.size).toBe(1_000)
})

test('journals of a process that dies while it takes them over, again and again, are all there in the end, each once', async () => {
  await using base = new TemporaryBase()
  const journals: string[] = []
  for (const step of ['', 'journal_adopted', 'journal_adopted', 'journal_unnested', 'journal_adopted']) {
    const one = new JournalProcess(base.path, 50, step === '' ? '' : `ingress.${step}`)
    if (step === '') {
      await one.untilSaid('done')
      journals.push(one.journal)
      await one.kill()
    } else expect(await one.ended()).toBe('SIGKILL')
  }
  const { directory } = await base.open()
  await adoptOrphans(base.path, directory)
  const names = adoptedIn(directory.path).map((path) => path.slice(-36))
  expect(names).toHaveLength(5)
  expect(names).toContain(journals[0])
  expect(adoptedIn(directory.path).flatMap((path) => adoptedIn(path))).toEqual([])
  expect(holdings(join(directory.path, 'adopted', journals[0] ?? '')).records.size).toBe(50)
})
