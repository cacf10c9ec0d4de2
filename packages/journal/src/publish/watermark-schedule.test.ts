import { expect, test } from 'vitest'
import { WatermarkSchedule } from './watermark-schedule.ts'

/** The times at which watermarks were due, asked every 50 ms; `recordsAt` says how many records there are by then. */
function dueTimes(untilMs: number, recordsAt: (nowMs: number) => number): number[] {
  const schedule = new WatermarkSchedule()
  const due: number[] = []
  for (let nowMs = 0; nowMs <= untilMs; nowMs += 50) if (schedule.isDue(nowMs, recordsAt(nowMs))) due.push(nowMs)
  return due
}

test('A journal without records writes a watermark every five seconds', () => {
  expect(dueTimes(20_000, () => 0)).toEqual([0, 5_000, 10_000, 15_000, 20_000])
})

test('A journal with records writes a watermark every second', () => {
  expect(dueTimes(4_000, (nowMs) => 1 + nowMs)).toEqual([0, 1_000, 2_000, 3_000, 4_000])
})

test('A record of an idle journal is covered by a watermark within a second, and those of the next five seconds follow', () => {
  const recordMs = 7_200
  const due = dueTimes(25_000, (nowMs) => (nowMs >= recordMs ? 1 : 0))
  expect(due).toEqual([0, 5_000, 7_200, 8_200, 9_200, 10_200, 11_200, 16_200, 21_200])
})
