import { costMax } from '@weir/core/limits/limit-store.ts'
import type { SettlementLimit, SettlementText } from '@weir/core/limits/script-codec.ts'
import { phases } from '@weir/core/limits/script-protocol.ts'

/**
 * The marker of a decision that is to be settled, as decide.lua leaves it and settle.lua replaces it: a head of 34 bytes (lua/lib/reservation.lua
 * describes it), one line of JSON, and once it is settled a line break and behind it big-endian doubles: when it was settled by
 * Redis's clock, and four for each limit.
 */
export interface Marker {
  readonly phase: Phase
  readonly untilMs: number
  /** Redis's clock when it was charged. */
  readonly atUs: number
  /** Shadow limits that it was not charged to; bit 0 is the first. */
  readonly exceededMask: number
  /** As it was charged. */
  readonly cost: number
  readonly text: SettlementText
  /** Of one that is owed or recorded. */
  readonly settled: SettledMarker | undefined
}

type Phase = 'open' | 'owed' | 'recorded' | 'void'

export interface SettledMarker extends SettledBy {
  /** Redis's clock when it was settled. */
  readonly atUs: number
  /** Of `chargedIn`, in their order. */
  readonly counts: readonly SettledCount[]
}

/** What it was settled to, and who is to record that. */
export interface SettledBy {
  readonly cost: number
  /** Process start that owes the record. */
  readonly owner: string
  /** Redis's clock when that process took it over from one that died; 0 for the one that settled. */
  readonly takenUs: number
}

export interface SettledCount {
  readonly changed: boolean
  readonly used: number
  readonly remaining: number
  readonly resetMs: number
}

const headBytes = 34
const phaseNames: Readonly<Record<number, Phase>> = {
  [phases.OPEN]: 'open',
  [phases.RECORD_PENDING]: 'owed',
  [phases.RECORDED]: 'recorded',
  [phases.VOID]: 'void',
}
const phaseAt = 1
const doublesPerCount = 4

type Fields = Readonly<Record<string, unknown>>
const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isText = (value: unknown): value is string => typeof value === 'string'
const isNumber = (value: unknown): value is number => typeof value === 'number'

const isLimit = (value: unknown): value is SettlementLimit =>
  Array.isArray(value) && isText(value[0]) && isNumber(value[1]) && isText(value[2]) && isText(value[3])

function isSettlementText(value: unknown): value is SettlementText & { readonly settled?: unknown } {
  if (!isFields(value) || !isText(value.about)) return false
  const { limits, beside = [], settleMax = 0 } = value
  const isWhole = Array.isArray(limits) && limits.every(isLimit) && Array.isArray(beside) && beside.every(isText)
  return isWhole && isNumber(settleMax)
}

const isSettledBy = (value: unknown): value is SettledBy =>
  isFields(value) && isNumber(value.cost) && isText(value.owner) && isNumber(value.takenUs)

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function readSettled(by: unknown, numbers: Buffer): SettledMarker | undefined {
  if (!isSettledBy(by) || numbers.length < 8) return undefined
  const counts: SettledCount[] = []
  for (let at = 8; at + doublesPerCount * 8 <= numbers.length; at += doublesPerCount * 8) {
    const [changed = 0, used = 0, remaining = 0, resetMs = 0] = [0, 8, 16, 24].map((by) =>
      numbers.readDoubleBE(at + by),
    )
    counts.push({ changed: changed === 1, used, remaining, resetMs })
  }
  return { ...by, atUs: numbers.readDoubleBE(0), counts }
}

/** Undefined for what is no marker. */
export function parseMarker(bytes: Buffer): Marker | undefined {
  const phase = phaseNames[bytes[phaseAt] ?? -1]
  if (bytes.length < headBytes || bytes[0] !== 's'.charCodeAt(0) || phase === undefined) return undefined
  const lineBreak = bytes.indexOf(0x0a, headBytes)
  const end = lineBreak < 0 ? bytes.length : lineBreak
  const text = parseJson(bytes.toString('utf8', headBytes, end))
  if (!isSettlementText(text)) return undefined
  const settled = readSettled(text.settled, bytes.subarray(end + 1))
  if (settled === undefined && (phase === 'owed' || phase === 'recorded')) return undefined
  const [untilMs = 0, atUs = 0, exceededMask = 0, cost = 0] = [2, 10, 18, 26].map((at) => bytes.readDoubleBE(at))
  return { phase, untilMs, atUs, exceededMask, cost, text, settled }
}

/** The limits whose counts are corrected: those that the decision was charged to, but for the ones it leaves as they are. */
export const chargedIn = ({ text, exceededMask }: Marker): readonly SettlementLimit[] =>
  text.limits.filter(([, , , , isFixed], at) => isFixed !== 1 && (exceededMask & (1 << at)) === 0)

/**
 * The most that it can be settled to. Versions before did not say: then the capacity of its largest limit, as far as it is named
 * here, and without limits whatever a decision may cost.
 */
export function settleMaxOf({ text, cost }: Marker): number {
  const { limits, beside = [], settleMax } = text
  const isUnlimited = limits.length + beside.length === 0
  const most = settleMax ?? (isUnlimited ? costMax : Math.max(0, ...limits.map(([, size]) => size)))
  return Math.max(cost, most)
}

/** What settle.lua is to put before its numbers: the marker of a settled decision. One that corrects nothing owes no record. */
export function settledHead(bytes: Buffer, { text, cost }: Marker, by: SettledBy): Buffer {
  const head = Buffer.from(bytes.subarray(0, headBytes))
  head[phaseAt] = by.cost === cost ? phases.RECORDED : phases.RECORD_PENDING
  return Buffer.concat([head, Buffer.from(`${JSON.stringify({ ...text, settled: by })}\n`)])
}

/** The same marker once its record is safe. */
export function recordedMarker(bytes: Buffer): Buffer {
  const next = Buffer.from(bytes)
  next[phaseAt] = phases.RECORDED
  return next
}

/** The same marker once another process owes the record. */
export function takenMarker(bytes: Buffer, marker: Marker, by: SettledBy): Buffer {
  const numbers = bytes.subarray(bytes.indexOf(0x0a, headBytes) + 1)
  const head = settledHead(bytes, marker, by)
  return Buffer.concat([head, numbers])
}
