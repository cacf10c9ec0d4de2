import type { DecisionPage, ListedDecision } from '@weir/api/decisions.ts'
import { count } from '@weir/core/format.ts'
import { useEffect, useRef, useState } from 'preact/hooks'
import { ask } from '../api.ts'
import { clock } from '../format.ts'
import { zoneNow } from '../location.ts'
import { type Connection, useStream } from './stream.ts'

/** Seconds that a chart shows. */
const secondsShown = 120
/** Lines of the tail: more than anybody reads of what goes by. */
const linesMax = 100
/** What came is drawn at most every 200 ms: no reader is faster, and the page stays free for what the reader does. */
const drawnEveryMs = 200

/** One second; null while there was no connection. */
interface Second {
  readonly allowed: number | null
  readonly denied: number | null
}

export interface Seen {
  /** Since 1970, of the last of `seconds`. */
  readonly endS: number
  readonly seconds: readonly Second[]
  readonly lines: readonly ListedDecision[]
  readonly dropped: number
  readonly gaps: number
}

const unknown: Second = { allowed: null, denied: null }
const nothing: Seen = { endS: 0, seconds: [], lines: [], dropped: 0, gaps: 0 }

/** Adds the second that `data` says: those between are unknown. */
function withSecond({ endS, seconds }: Seen, data: string): Partial<Seen> {
  const { ts, rows } = JSON.parse(data) as { ts: string; rows: { outcome: string; count: number }[] }
  const sum = (outcome: string) => rows.reduce((all, row) => all + (row.outcome === outcome ? row.count : 0), 0)
  const one = { allowed: sum('allow'), denied: sum('deny') }
  // Two of one second come where a timer was late: the later one is the next.
  const nowS = Math.max(endS + 1, Math.floor(Date.parse(ts) / 1_000))
  const missing = endS === 0 ? 0 : Math.min(secondsShown, nowS - endS - 1)
  // A timer that is late by a second is no gap.
  const between = Array.from({ length: missing }, () => (missing > 1 ? unknown : one))
  const all = seconds.length === 0 ? Array.from({ length: secondsShown }, () => unknown) : seconds
  return { endS: nowS, seconds: [...all, ...between, one].slice(-secondsShown) }
}

/** What is asked of the time before. */
const historyMax = 1_000

/** Adds what was decided before the stream began: the last decisions, and the seconds that they are all of. */
function withHistory(seen: Seen, rows: readonly ListedDecision[], nowS: number): Seen {
  const endS = seen.endS === 0 ? nowS : seen.endS
  const startS = endS - secondsShown + 1
  const secondOf = ({ ts }: ListedDecision) => Math.floor(Date.parse(ts) / 1_000)
  // The oldest second of a full page may lack some.
  const last = rows.at(-1)
  const wholeS = rows.length < historyMax || last === undefined ? startS : secondOf(last) + 1
  const sums = new Map<number, { allowed: number; denied: number }>()
  for (const row of rows) {
    const sum = sums.get(secondOf(row)) ?? { allowed: 0, denied: 0 }
    sum[row.outcome === 'allow' ? 'allowed' : 'denied'] += row.count
    sums.set(secondOf(row), sum)
  }
  const known = new Set(seen.lines.map(({ id }) => id))
  const seconds = Array.from({ length: secondsShown }, (_, at) => {
    const one = seen.seconds[at] ?? unknown
    const second = startS + at
    if (one.allowed !== null || second < wholeS) return one
    return sums.get(second) ?? { allowed: 0, denied: 0 }
  })
  return {
    ...seen,
    endS,
    seconds,
    lines: [...seen.lines, ...rows.filter(({ id }) => !known.has(id))].slice(0, linesMax),
  }
}

/** What the stream says, drawn some times a second; while it is paused, what comes is counted and not listed. */
export function useLiveSeconds(path: string, isPaused = false): Seen & { readonly connection: Connection } {
  const [seen, setSeen] = useState(nothing)
  const kept = useRef({ of: path, seen: nothing, isDue: false })
  if (kept.current.of !== path) kept.current = { of: path, seen: nothing, isDue: false }
  useEffect(() => {
    const own = kept.current
    const [list = '', query = ''] = path.replace('/stream', '').split('?')
    const params = new URLSearchParams(query)
    params.delete('of')
    ask<DecisionPage>(`${list}?${params}&from=now-2m&limit=${historyMax}`).then(
      ({ rows }) => {
        own.seen = withHistory(own.seen, rows, Math.floor(Date.now() / 1_000))
        if (kept.current === own) setSeen(own.seen)
      },
      // The page goes on without what was before.
      () => undefined,
    )
  }, [path])
  const connection = useStream(path, (event, data) => {
    const own = kept.current
    const { seen: before } = own
    if (event === 'sums') own.seen = { ...before, ...withSecond(before, data) }
    else if (event === 'dropped') own.seen = { ...before, dropped: before.dropped + JSON.parse(data).count }
    else if (event === 'gap') own.seen = { ...before, gaps: before.gaps + 1 }
    else if (event === 'decision' && !isPaused)
      own.seen = { ...before, lines: [JSON.parse(data) as ListedDecision, ...before.lines].slice(0, linesMax) }
    else return
    if (own.isDue) return
    own.isDue = true
    setTimeout(() => {
      own.isDue = false
      if (kept.current === own) setSeen(own.seen)
    }, drawnEveryMs)
  })
  return { ...(kept.current.of === path && kept.current.seen === nothing ? nothing : seen), connection }
}

/** The seconds as a chart's lines. */
export function liveChart({ endS, seconds }: Seen) {
  const begins = seconds.map((_, at) => (endS - seconds.length + 1 + at) * 1_000)
  const zone = zoneNow()
  return {
    shape: 'lines',
    zone,
    begins,
    endMs: endS * 1_000,
    label: (at: number) => clock(begins[at] ?? 0, zone),
    tick: (ms: number) => clock(ms, zone),
    write: (value: number | null | undefined) => `${count(value)}/s`,
    series: [
      { name: 'allowed', kind: 'allowed', values: seconds.map(({ allowed }) => allowed) },
      { name: 'refused', kind: 'refused', values: seconds.map(({ denied }) => denied) },
    ],
  }
}
