import type { LimitState } from '@weir/core/limits/decision.ts'
import { costMax, type Units } from '@weir/core/limits/limit-store.ts'
import type { SettlementLimit, SettlementText } from '@weir/core/limits/script-codec.ts'
import { phases } from '@weir/core/limits/script-protocol.ts'

/**
 * The marker of a decision that is to be settled, as decide.lua leaves it and settle.lua replaces it: a head of 34
 * bytes (lua/lib/reservation.lua describes it), one line of JSON, and once it is settled a line break and behind it
 * big-endian doubles: when it was settled by Redis's clock, and four for each limit.
 */
export interface Marker {
  readonly bytes: Buffer
  /** One of `phases`. */
  readonly phase: number
  readonly untilMs: number
  /** Redis's clock when it was charged. */
  readonly atUs: number
  /** As it was charged. */
  readonly cost: number
  readonly text: MarkerText
  /**
   * The limits whose counts are corrected: those that the decision was charged to, but for the ones it leaves as they
   * are.
   */
  readonly limits: readonly SettlementLimit[]
  /** Present once the record is pending or safe. */
  readonly settled: SettledMarker | undefined
}

interface SettledMarker extends SettledBy {
  /** Redis's clock when it was settled. */
  readonly atUs: number
  /** The limits whose counts changed by that, as it left them. */
  readonly limits: readonly (LimitState & { readonly key: string })[]
}

/** What a decision was settled to, and which process is to record that. */
export interface SettledBy {
  readonly cost: number
  /** What it used of other units; absent where it held none and used none. */
  readonly units?: Readonly<Record<string, number>> | undefined
  /** The process start that has to write the record. */
  readonly owner: string
  /** Redis's clock when that process took over from one that died; 0 for the one that settled. */
  readonly takenUs: number
}

const headBytes = 34
const phaseAt = 1
const countBytes = 4 * 8

/** Of a decision that was renewed: when, by Redis's clock, and for how long it was to stay open from the start. */
interface Renewed {
  readonly us: number
  readonly ttlMs: number
}

type MarkerText = SettlementText & { readonly settled?: SettledBy; readonly renewed?: Renewed }

/** Reads what this version or an earlier one wrote; undefined for any other text. */
function parseText(text: string): MarkerText | undefined {
  try {
    const parsed = JSON.parse(text)
    return typeof parsed?.about === 'string' && Array.isArray(parsed.limits) ? parsed : undefined
  } catch {
    return undefined
  }
}

function readSettled(
  by: SettledBy | undefined,
  numbers: Buffer,
  corrected: readonly SettlementLimit[],
): SettledMarker | undefined {
  if (by === undefined || numbers.length < 8) return undefined
  const limits = corrected.flatMap(([name, size, key], index) => {
    const at = 8 + index * countBytes
    if (at + countBytes > numbers.length || numbers.readDoubleBE(at) !== 1) return []
    const [used = 0, remaining = 0, resetMs = 0] = [8, 16, 24].map((offset) => numbers.readDoubleBE(at + offset))
    return [{ name, size, used, remaining, resetMs, key }]
  })
  return { ...by, atUs: numbers.readDoubleBE(0), limits }
}

/** Returns undefined for bytes that are no marker. */
export function parseMarker(bytes: Buffer): Marker | undefined {
  const phase = bytes[phaseAt] ?? -1
  if (bytes.length < headBytes || bytes[0] !== 's'.charCodeAt(0) || phase > phases.VOID) return undefined
  const lineBreak = bytes.indexOf(0x0a, headBytes)
  const end = lineBreak < 0 ? bytes.length : lineBreak
  const text = parseText(bytes.toString('utf8', headBytes, end))
  if (text === undefined) return undefined
  const [untilMs = 0, atUs = 0, exceededMask = 0, headCost = 0] = [2, 10, 18, 26].map((at) => bytes.readDoubleBE(at))
  const { cost = headCost } = text
  // A shadow limit that had no capacity was not charged.
  const limits = text.limits.filter(([, , , , kind], at) => kind !== 1 && (exceededMask & (1 << at)) === 0)
  const settled = readSettled(text.settled, bytes.subarray(end + 1), limits)
  if (settled === undefined && (phase === phases.RECORD_PENDING || phase === phases.RECORDED)) return undefined
  return { bytes, phase, untilMs, atUs, cost, text, limits, settled }
}

/**
 * Returns the most that it can be settled to. Versions before did not say: then the capacity of its largest limit, as
 * far as it is named here, and without limits whatever a decision may cost.
 */
export function settleMaxOf({ text, cost }: Marker): number {
  const { limits, beside = [], settleMax } = text
  const isUnlimited = limits.length + beside.length === 0
  const most = settleMax ?? (isUnlimited ? costMax : Math.max(0, ...limits.map(([, size]) => size)))
  return Math.max(cost, most)
}

/** What settling leaves of each unit: what is said, else what was held. Undefined where there are none. */
export function settledUnits({ text: { units: held } }: Marker, units: Units | undefined): SettledBy['units'] {
  return held === undefined && units === undefined ? undefined : { ...held, ...Object.fromEntries(units ?? []) }
}

/** What is changed of the count of a limit; see lua/scripts/settle.lua. */
export function changeOf([, , , definition, kind, charged]: SettlementLimit, marker: Marker, by: SettledBy) {
  if (kind === 2) return [1, 0, slotsUsOf(marker)]
  if (typeof kind !== 'string') return by.cost - marker.cost
  const [held, used] = [charged ?? marker.text.units?.[kind] ?? 0, by.units?.[kind] ?? 0]
  return isHeld(definition) ? [held, used] : used - held
}

/** When its slots were taken, or renewed last, by Redis's clock. */
const slotsUsOf = ({ atUs, text: { renewed } }: Marker) => renewed?.us ?? atUs

/**
 * Returns the marker of a decision that stays open for as long again from `nowUs` on, at most until `lastMs`, and what
 * is changed of the count of each limit: slots are taken again.
 */
export function renewedMarker(marker: Marker, nowUs: number, lastMs: number) {
  const { atUs, text, limits } = marker
  const atMs = Math.floor(atUs / 1_000)
  const { ttlMs } = text.renewed ?? { ttlMs: marker.untilMs - atMs }
  const untilMs = Math.min(Math.floor(nowUs / 1_000) + ttlMs, lastMs)
  const head = Buffer.from(marker.bytes.subarray(0, headBytes))
  head.writeDoubleBE(untilMs, 2)
  const holdMs = untilMs - atMs
  const changes = limits.map(([, , , definition, kind, charged]) => {
    if (kind === 2) return [1, 1, slotsUsOf(marker), nowUs]
    const held = typeof kind === 'string' && isHeld(definition) ? (charged ?? text.units?.[kind] ?? 0) : 0
    return held === 0 ? 0 : [held, held, atUs, atUs, holdMs]
  })
  const kept = text.limits.map(([name, size, key, definition, ...kind]): SettlementLimit => {
    return [name, size, key, isHeld(definition) ? definition.replace(/\d+\]$/, `${holdMs}]`) : definition, ...kind]
  })
  const line = JSON.stringify({ ...text, limits: kept, renewed: { us: nowUs, ttlMs } })
  return { untilMs, bytes: Buffer.concat([head, Buffer.from(`${line}\n`)]), changes }
}

/** Whether a definition says for how long what it counts is held. */
const isHeld = (definition: string) => JSON.parse(definition).length === 9

/**
 * Returns what settle.lua is to put before its numbers: the marker of a settled decision. One that corrects nothing has
 * no record to wait for.
 */
export function settledHead({ bytes, text, cost }: Marker, by: SettledBy): Buffer {
  const head = Buffer.from(bytes.subarray(0, headBytes))
  head[phaseAt] = by.cost === cost && by.units === undefined ? phases.RECORDED : phases.RECORD_PENDING
  return Buffer.concat([head, Buffer.from(`${JSON.stringify({ ...text, settled: by })}\n`)])
}

/** Returns the same marker once its record is safe. */
export function recordedMarker({ bytes }: Marker): Buffer {
  const next = Buffer.from(bytes)
  next[phaseAt] = phases.RECORDED
  return next
}

/** Returns the same marker once another process is to write the record. */
export function takenMarker(marker: Marker, by: SettledBy): Buffer {
  const { bytes } = marker
  return Buffer.concat([settledHead(marker, by), bytes.subarray(bytes.indexOf(0x0a, headBytes) + 1)])
}
