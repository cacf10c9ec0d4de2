import { expect, onTestFinished, test, vi } from 'vitest'
import { type Frame, frameKinds } from '../format/frame.ts'
import { CoalescedRecords } from './coalesced-records.ts'
import type { FrameLog } from './frame-log.ts'
import type { SequenceAllocator } from './sequence-allocator.ts'

test('The watermark waits for the oldest of several records whose closes did not reach the file', () => {
  const clock = vi.spyOn(Date, 'now')
  onTestFinished(() => clock.mockRestore())
  const frames = { put: () => true, hasSpace: () => true, schedule: () => undefined } as unknown as FrameLog
  const records = new CoalescedRecords(frames, { putClose: () => true } as unknown as SequenceAllocator)
  for (const openedMs of [1_000, 2_000, 3_000]) {
    clock.mockReturnValue(openedMs)
    records.open(0, 'acme', '', '')?.add()
  }
  const oldestMs = records.oldestMs
  expect(records.close(true)).toBe(true)
  expect(records.oldestMs).toBe(Number.POSITIVE_INFINITY)
  const closeOf = (number: number) =>
    ({ kind: frameKinds.sumClose, topic: 0, seq: 0, value: Buffer.from(String(number)) }) as unknown as Frame
  records.rollBack([1, 2, 3].map(closeOf), 0)
  expect(records.oldestMs).toBe(oldestMs)
})
