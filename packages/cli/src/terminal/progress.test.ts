import type { WriteStream } from 'node:tty'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ProgressLine } from './progress.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

function openLine(columns = 80) {
  const written: string[] = []
  const output = { columns, write: (text: string) => written.push(text) > 0 } as unknown as WriteStream
  return {
    line: new ProgressLine(output),
    shown: () => written.at(-1)?.replace('\r', '').replace('\u001b[K', ''),
    written,
  }
}

test('progress is one line from the first second on, with a bar where it is known how much there is', () => {
  const { line, shown, written } = openLine()
  line.begin('audit')
  line.tell('usage_15m', 0.25)
  vi.advanceTimersByTime(800)
  expect(written).toEqual([])
  vi.advanceTimersByTime(400)
  expect(shown()).toBe('audit: usage_15m [######------------------] 25%  1 s')
  line.tell('quotas in Redis')
  vi.advanceTimersByTime(3_000)
  expect(shown()).toBe('audit: quotas in Redis  4 s')
  line.end()
  expect(shown()).toBe('')
  vi.advanceTimersByTime(3_000)
  expect(shown()).toBe('')
})

test('a line of progress fits into its terminal, and leaves what is written between', () => {
  const { line, shown } = openLine(50)
  line.begin('migrate')
  line.tell('a name that is far longer than the terminal is wide', 1)
  vi.advanceTimersByTime(2_000)
  expect(shown()).toHaveLength(49)
  expect(shown()).toMatch(/^migrate: a .*\[#{24}\] 100% {2}2 s$/)
  line.hide()
  expect(shown()).toBe('')
  vi.advanceTimersByTime(200)
  expect(shown()).not.toBe('')
  line.end()
})
