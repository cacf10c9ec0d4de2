import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import { decisionInput } from '@weir/contracts/testing/decision-input.ts'
import { Reach } from '@weir/core/usage/reach.ts'
import type { LogRecord } from '@weir/kafka/partition-log.ts'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { LiveDecisions } from './live-decisions.ts'

type OnRecords = (partition: number, records: readonly LogRecord[]) => void

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Decisions without Kafka: what follows them, and how often that began and ended. */
function openLive() {
  const counted = { begun: 0, ended: 0 }
  let hand: OnRecords = () => undefined
  const live = new LiveDecisions(({ onRecords }) => {
    counted.begun += 1
    hand = onRecords
    return { ready: Promise.resolve(), problem: undefined, close: () => (counted.ended += 1) }
  })
  return { live, counted, decide: (offset: bigint, subject?: string) => hand(0, [recordOf(offset, subject)]) }
}

function recordOf(offset: bigint, subject = 'acme'): LogRecord {
  const decision = encodeDecisionOpen(decisionInput({ id: `id-${offset}`, subject }))
  const value = Buffer.from(`${decision},"journal":"a","seq":1}`)
  return { offset, key: null, value, headers: {}, timestampMs: 1 }
}

function openReader(live: LiveDecisions, lastId?: string, more: object = {}) {
  const output = new ServerResponse(new IncomingMessage(new Socket()))
  const said: string[] = []
  output.write = (text: string) => said.push(text) > 0
  const filter = { only: {}, except: {}, subjectPrefix: undefined, minCost: 0 }
  const listener = { by: 'one', reach: Reach.everybody, filter, isSumsOnly: false, lastId, ...more }
  const open = () => live.open({ ...listener, isAllowed: async () => true }, output)
  return { open, output, text: () => said.join('') }
}

it('a reader that left before its stream was open takes no permit', () => {
  const { live } = openLive()
  for (let one = 0; one < 5; one += 1) {
    expect(live.refusal('one')).toBeUndefined()
    const { open, output } = openReader(live)
    output.destroyed = true
    open()
  }
})

it('follows from the first reader until a minute after the last, and keeps until then what a reader missed', () => {
  const { live, counted, decide } = openLive()
  const [first, second] = [openReader(live), openReader(live)]
  first.open()
  second.open()
  decide(1n)
  for (const { output } of [first, second]) output.emit('close')
  vi.advanceTimersByTime(59_000)
  decide(2n)
  expect(counted).toEqual({ begun: 1, ended: 0 })
  const back = openReader(live, '0-1')
  back.open()
  expect(back.text()).toContain('id-2')
  expect(back.text()).not.toContain('gap')
  vi.advanceTimersByTime(120_000)
  expect(counted).toEqual({ begun: 1, ended: 0 })
  back.output.emit('close')
  vi.advanceTimersByTime(60_000)
  expect(counted).toEqual({ begun: 1, ended: 1 })
  const late = openReader(live, '0-2')
  late.open()
  expect(late.text()).toContain('event: gap')
  expect(counted).toEqual({ begun: 2, ended: 1 })
  live.close()
  expect(counted).toEqual({ begun: 2, ended: 2 })
})

it('sends an empty comment every fifteen seconds, and sums every second', () => {
  const { live, decide } = openLive()
  const reader = openReader(live)
  reader.open()
  decide(1n)
  vi.advanceTimersByTime(30_000)
  expect(reader.text().match(/^:$/gm)).toHaveLength(2)
  expect(reader.text().match(/^event: sums$/gm)).toHaveLength(30)
  live.close()
})

it('sums are exact for all decisions together, also where they are not sent', () => {
  const { live, decide } = openLive()
  const reader = openReader(live, undefined, { isSumsOnly: true })
  reader.open()
  for (let one = 0; one < 610; one += 1) decide(BigInt(one), `subject-${one}`)
  vi.advanceTimersByTime(1_000)
  const { rows } = JSON.parse(/^data: (.*"rows".*)$/m.exec(reader.text())?.[1] ?? '{}')
  expect(rows).toEqual([{ outcome: 'allow', denied_by: '', count: 610, cost: 610 }])
  live.close()
})
