import { describe, expect, it } from 'vitest'
import { completeThrough, type JournalWatermark } from './complete-through.ts'

const t0 = Date.parse('2026-11-21T12:00:00Z')

/** A mark so many seconds after noon of a journal that began at noon, unless told otherwise. */
const mark = (journal: string, partition: number, second: number, more: { end?: true; began?: number } = {}) => ({
  journal,
  partition,
  markMs: t0 + second * 1_000,
  firstMarkMs: t0 + (more.began ?? 0) * 1_000,
  isEnd: more.end === true,
})

function ask(marks: readonly JournalWatermark[]) {
  const numbers = [...new Set(marks.map(({ partition }) => partition))]
  const partitions = numbers.map((partition) => {
    const here = marks.filter((one) => one.partition === partition)
    return {
      partition,
      firstMarkMs: Math.min(...here.map(({ firstMarkMs }) => firstMarkMs)),
      lastMarkMs: Math.max(...here.map(({ markMs }) => markMs)),
    }
  })
  const { completeThroughMs, silent } = completeThrough(partitions, marks)
  return {
    second: completeThroughMs === undefined ? undefined : (completeThroughMs - t0) / 1_000,
    silent: silent.map(({ journal, sinceMs }) => [journal, (sinceMs - t0) / 1_000]),
  }
}

describe('complete_through', () => {
  it('is unknown before the first mark', () => {
    expect(ask([])).toEqual({ second: undefined, silent: [] })
  })

  it('is the least mark of all live journals in all partitions', () => {
    expect(ask([mark('a', 0, 30), mark('a', 1, 20), mark('b', 0, 29), mark('b', 1, 31)]).second).toBe(20)
  })

  it('does not wait for a journal that has ended', () => {
    expect(ask([mark('a', 0, 5, { end: true }), mark('b', 0, 29)]).second).toBe(29)
    expect(ask([mark('a', 0, 5, { end: true })]).second).toBe(5)
  })

  it('waits for the rest of a journal that has ended in a partition that is read late, however old it is', () => {
    const late = [mark('a', 0, 50, { end: true }), mark('a', 1, 20), mark('b', 0, 900), mark('b', 1, 60)]
    expect(ask(late)).toEqual({ second: 20, silent: [] })
  })

  it('passes over a journal that was silent for a minute while others were not, and names it', () => {
    const marks = [mark('a', 0, 10), mark('a', 1, 11), mark('b', 0, 72), mark('b', 1, 71)]
    expect(ask(marks)).toEqual({ second: 71, silent: [['a', 11]] })
    expect(ask([mark('a', 0, 12), mark('b', 0, 72)])).toEqual({ second: 12, silent: [] })
  })

  it('makes no journal silent for a partition that is not read any more, and stands still', () => {
    const marks = [mark('a', 0, 900), mark('a', 1, 11), mark('b', 0, 901), mark('b', 1, 12)]
    expect(ask(marks)).toEqual({ second: 11, silent: [] })
  })

  it('is not ahead of a journal of which nothing was read yet in a partition', () => {
    const marks = [mark('a', 0, 100), mark('a', 1, 100), mark('b', 0, 100, { began: 60 })]
    expect(ask(marks).second).toBe(60)
  })

  it('does not fall back when a partition is added', () => {
    const marks = [mark('a', 0, 100), mark('b', 0, 100), mark('a', 1, 100, { began: 99 })]
    expect(ask(marks).second).toBe(99)
    expect(ask([...marks, mark('c', 0, 50, { end: true })]).second).toBe(99)
  })
})
