import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import { decisionInput } from '@weir/contracts/testing/decision-input.ts'
import { noCrash } from '@weir/runtime/crash-point.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, test, vi } from 'vitest'
import { adoptedIn, adoptOrphans, createDirectory, type DirectoryLock } from '../directory/directory.ts'
import { TemporaryBase, testOptions, testTopics } from '../testing/temporary-journal.ts'
import { openWriter } from '../write/open-writer.ts'
import { OrphanJournals } from './orphan-journals.ts'

// The disk is the real one; other work on the machine may slow it down.
vi.setConfig({ testTimeout: 60_000 })

const correctionOf = (decisionId: string, subject: string) =>
  encodeDecisionOpen(
    decisionInput({ subject, route: 'GET /\u00fc', count: 0, correction: { corrects: decisionId, adjustment: -1 } }),
  )

/** A process that corrected this decision and is gone, with what it had taken over before. */
async function leaveDead(base: string, decisionId: string, subject = 'acme'): Promise<string> {
  const directory = await createDirectory(base, testTopics)
  await adoptOrphans(base, directory)
  const writer = await openWriter(directory, testOptions)
  writer.log(0).append('other', '{"n":1')
  writer.log(0).append(subject, correctionOf(decisionId, subject))
  await writer.close()
  await directory.release()
  return directory.journal
}

/**
 * Takes over into `into`; `events` are the reports, with the journals whose segments were all there then, and what
 * was to be sent.
 */
function adopt(base: string, into: DirectoryLock) {
  const events: string[] = []
  const whole = () => adoptedIn(into.path).filter((path) => readdirSync(path).includes('00000001.seg')).length
  const adopted = new OrphanJournals({
    base,
    into,
    log: createLogger('journal', 'silent'),
    crash: noCrash,
    publisher: { add: () => void events.push('sends'), remove: () => undefined },
    onCorrections: (corrections) => {
      for (const { id, subject } of corrections) events.push(`${subject} ${id}, of ${whole()}`)
    },
  })
  return { adopted, events, sent: () => events.filter((event) => event === 'sends').length }
}

const upTo = (count: number) => Array.from({ length: count }, () => crypto.randomUUID())

test('corrections in the journals of dead processes, nested ones too, are reported before the first of them is sent', async () => {
  await using base = new TemporaryBase()
  const ids = upTo(6)
  // Each takes the one before it over, and dies with it: also more than are sent at a time.
  for (const [at, id] of ids.entries()) await leaveDead(base.path, id, `s\u00fcbj "${at}"`)
  const { directory } = await base.open()
  const { adopted, events, sent } = adopt(base.path, directory)
  adopted.tick(0)
  expect(await waitUntil(() => sent() === 4, { deadlineMs: 30_000 })).toBe(true)
  adopted.close()
  const told = ids.map((id, at) => `s\u00fcbj "${at}" ${id}, of 6`)
  expect(events.slice(0, 6).toSorted()).toEqual(told.toSorted())
  expect(events.slice(6)).toEqual(Array(4).fill('sends'))
})

test('a thread that goes on for one that died reads again what that one took over', async () => {
  await using base = new TemporaryBase()
  const [id = ''] = upTo(1)
  await leaveDead(base.path, id)
  const { directory } = await base.open()
  await adoptOrphans(base.path, directory)
  const { adopted, events, sent } = adopt(base.path, directory)
  adopted.tick(0)
  expect(await waitUntil(() => sent() === 1, { deadlineMs: 30_000 })).toBe(true)
  adopted.close()
  expect(events).toEqual([`acme ${id}, of 1`, 'sends'])
})

test('a process that stops adopts no more journals, and sends none whose corrections it could not report', async () => {
  await using base = new TemporaryBase()
  const journal = await leaveDead(base.path, crypto.randomUUID())
  const { directory } = await base.open()
  const { adopted, events } = adopt(base.path, directory)
  adopted.tick(0)
  adopted.takeNoMore()
  const isMoved = () => adoptedIn(directory.path).includes(join(directory.path, 'adopted', journal))
  expect(await waitUntil(isMoved, { deadlineMs: 30_000 })).toBe(true)
  const later = await leaveDead(base.path, crypto.randomUUID())
  adopted.tick(60_000)
  await new Promise(setImmediate)
  adopted.close()
  expect(readdirSync(base.path)).toContain(later)
  expect(events).toEqual([])
})
