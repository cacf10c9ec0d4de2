import type { ListedDecision } from '@weir/api/decisions.ts'
import { useRef, useState } from 'preact/hooks'
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

/** What the stream says, drawn some times a second; while it is paused, what comes is counted and not listed. */
export function useLiveSeconds(path: string, isPaused = false): Seen & { readonly connection: Connection } {
  const [seen, setSeen] = useState(nothing)
  const kept = useRef({ of: path, seen: nothing, isDue: false })
  if (kept.current.of !== path) kept.current = { of: path, seen: nothing, isDue: false }
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

/** The last second as figures, and all of them as a chart's lines. */
export function liveChart({ endS, seconds }: Seen) {
  const at = (index: number) => new Date((endS - seconds.length + 1 + index) * 1_000).toISOString().slice(11, 19)
  const labels = seconds.map((_, index) => at(index))
  return {
    labels,
    ticks: labels.map((label) => (label.endsWith('0') ? label : '')),
    series: [
      { name: 'allowed', kind: 'allowed', values: seconds.map(({ allowed }) => allowed) },
      { name: 'refused', kind: 'refused', values: seconds.map(({ denied }) => denied) },
    ],
  }
}
