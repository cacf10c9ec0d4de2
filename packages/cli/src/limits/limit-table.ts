import { textTable } from '../text-table.ts'
import type { CountReport, LimitReport } from './limit-report.ts'

const units = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'm'],
  [1_000, 's'],
] as const

/** `2h 5m`, `41s`, `300ms`: the two largest units, rounded up to the smaller. */
export function durationText(ms: number): string {
  if (ms <= 0) return '0s'
  if (ms < 1_000) return `${ms}ms`
  const at = units.findIndex(([unitMs]) => ms >= unitMs)
  const [large, small] = [units[at], units[at + 1]]
  if (large === undefined) return `${ms}ms`
  if (small === undefined) return `${Math.ceil(ms / large[0])}${large[1]}`
  const smalls = Math.ceil(ms / small[0])
  const perLarge = large[0] / small[0]
  const rest = smalls % perLarge
  return `${Math.floor(smalls / perLarge)}${large[1]}${rest === 0 ? '' : ` ${rest}${small[1]}`}`
}

function sizeText({ size, capacity, window_ms, period, algorithm }: LimitReport): string {
  const per = window_ms === null ? `a ${period}` : `in ${durationText(window_ms)}`
  return algorithm === 'token_bucket' ? `${size} ${per}, burst ${capacity}` : `${size} ${per}`
}

function stateTexts(limit: LimitReport, count: CountReport | undefined): string[] {
  if (limit.counts === null) return ['?', '?', '?', '', 'counts by address: name it with --ip']
  if (count === undefined) return ['', '', '', '', 'no count yet']
  const { used, remaining, reset_ms, blocked_ms, key } = count
  const blocked = blocked_ms > 0 ? `for ${durationText(blocked_ms)}` : 'no'
  return [String(used), String(remaining), reset_ms === 0 ? 'now' : durationText(reset_ms), blocked, key]
}

/** The limits with their counts for a person, one count a row. */
export function limitTable(limits: readonly LimitReport[]): string {
  const head = ['LIMIT', 'BECAUSE OF', 'ALGORITHM', 'ADMITS', 'USED', 'LEFT', 'FREE IN', 'BLOCKED', 'KEY']
  const rows = limits.flatMap((limit) => {
    const { name, algorithm, mode, because, own_version } = limit
    const why = because.length > 2 ? [...because.slice(0, 2), '…'] : because
    const texts = [
      name,
      `${why.join(', ')}${own_version ? ', own version' : ''}`,
      mode === 'shadow' ? `${algorithm}, shadow` : algorithm,
      sizeText(limit),
    ]
    const counts = limit.counts === null || limit.counts.length === 0 ? [undefined] : limit.counts
    const lines = counts.map((count, at) => [...(at === 0 ? texts : ['', '', '', '']), ...stateTexts(limit, count)])
    return limit.more ? [...lines, ['', '', '', '', '…', '', '', '', 'and more']] : lines
  })
  return textTable([head, ...rows])
}
