import { parseJson } from '@weir/contracts/fields.ts'
import type { LoadRoute } from './profile.ts'

/** One limit of an answer, as far as answers say it. */
export interface AnsweredLimit {
  readonly name: string
  /** Rounded up to whole units of the answer's `unitMs`. */
  readonly resetMs: number
}

/** What a decision was, as its client saw it. */
export interface AnsweredDecision {
  readonly allowed: boolean
  readonly reason: string
  readonly deniedBy: string
  /** Empty where the answer names no limit with a time, as while Redis is away. */
  readonly limits: readonly AnsweredLimit[]
  readonly unitMs: number
}

/** How one request ended. */
export interface Answer {
  /** The status, or the name of the error of a request without an answer. */
  readonly code: string
  readonly isAnswered: boolean
  /** When the whole of it was there, on the clock of `performance.now()`: to read it takes time of its own. */
  readonly endedMs: number
  /** Undefined where nothing was decided: for a problem, or an answer of another program. */
  readonly decision?: AnsweredDecision | undefined
}

/** What is asked for. */
export interface LoadRequest extends Omit<LoadRoute, 'share'> {
  readonly subject: string
}

/** Asks for decisions in one way, over connections that are kept. */
export interface Sender {
  /** Sends one request: `onSent` when it begins to be written, `onAnswer` once at its end. Never throws. */
  send(asked: LoadRequest, onSent: () => void, onAnswer: (answer: Answer) => void): void
  close(): Promise<void>
}

/** A request without an answer for this long has none. */
export const answerDeadlineMs = 10_000

const secondMs = 1_000

/** Reads the limits of a `RateLimit` header of draft 10: `"minute";r=87;t=41`. One without a time has no state. */
function limitsOfHeader(header: string): readonly AnsweredLimit[] {
  return Array.from(header.matchAll(/"([^"]+)";r=\d+;t=(\d+)/g), ([, name = '', seconds]) => ({
    name,
    resetMs: Number(seconds) * secondMs,
  }))
}

/** The members of a JSON object; of any other text none. */
export const membersOf = (body: string): Readonly<Record<string, unknown>> => Object(parseJson(body))

interface Problem {
  readonly type?: unknown
  readonly 'violated-policies'?: readonly unknown[]
}

/** The reasons of decisions by the last words of their problems. */
const reasonsByProblem: Readonly<Record<string, string>> = {
  'quota-exceeded': 'limit',
  'cost-exceeds-limit': 'cost_exceeds_limit',
  'temporary-reduced-capacity': 'unavailable',
  unauthorized: 'unauthorized',
  'abnormal-usage-detected': 'unauthorized',
  'too-many-open': 'limit',
}

/** Reads a refusal from its problem, where it is one of Weir's. */
export function refusalOf(body: string): AnsweredDecision | undefined {
  const problem: Problem = membersOf(body)
  const reason = reasonsByProblem[/[#:]([a-z-]+)$/.exec(String(problem.type))?.[1] ?? '']
  if (reason === undefined) return undefined
  const [deniedBy = ''] = problem['violated-policies'] ?? []
  return { allowed: false, reason, deniedBy: String(deniedBy), limits: [], unitMs: secondMs }
}

/** A decision that admitted, by its headers. */
export const admissionOf = (rateLimit: string): AnsweredDecision => ({
  allowed: true,
  reason: 'ok',
  deniedBy: '',
  limits: limitsOfHeader(rateLimit),
  unitMs: secondMs,
})
