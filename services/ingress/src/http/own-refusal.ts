import { markersName } from '@weir/core/limits/exceeding.ts'
import { retryAfterSeconds } from '@weir/core/limits/rate-limit-headers.ts'
import type { Refusal, RefusalKind } from '@weir/core/limits/refusal.ts'
import type { RecordedDecision } from '@weir/decide/types.ts'
import type { Policy, Route } from '@weir/policy/policy.ts'
import { fillTemplate, namesInTemplate } from '@weir/policy/template.ts'
import type { Problem } from '@weir/runtime/problem.ts'
import type { ReplySettings } from './decision-reply.ts'

/** A body with its media type. */
export interface OwnBody {
  readonly type: string
  readonly bytes: Buffer
}

/** Undefined for refusals by Weir's own bounds (markers, wrong credentials), and for callers blocked by hand. */
function kindOf({ decision: { reason, deniedBy, retryAfterMs, byHand } }: RecordedDecision): RefusalKind | undefined {
  if (byHand !== undefined) return undefined
  if (reason === 'limit' || reason === 'blocked') return deniedBy === markersName ? undefined : 'limit'
  if (reason === 'unauthorized') return retryAfterMs === 0 ? 'unauthorized' : undefined
  if (reason === 'cost_exceeds_limit') return 'cost'
  return reason === 'unavailable' || reason === 'journal_full' ? 'unavailable' : undefined
}

/** The policy's own answer to a refused request: its route's, else that of the limit that refused, else everybody's. */
export function ownRefusalOf(
  recorded: RecordedDecision,
  { refusals }: Pick<Route, 'refusals'>,
  policy: Pick<Policy, 'refusals'>,
): Refusal | undefined {
  const kind = kindOf(recorded)
  if (kind === undefined) return undefined
  const { deniedBy } = recorded.decision
  const limit = deniedBy === '' ? undefined : recorded.limits?.find(({ name }) => name === deniedBy)
  return refusals?.[kind] ?? limit?.refusals?.[kind] ?? policy.refusals.get(kind)
}

/** The settings with the dialect of the refusal. */
export const settingsOf = <S extends ReplySettings>(settings: S, refusal: Refusal | undefined): ReplySettings =>
  refusal?.dialect === undefined ? settings : { ...settings, dialect: refusal.dialect }

/** The problem with the status and the message of the refusal. */
export const withOwnWords = (problem: Problem, refusal: Refusal | undefined): Problem =>
  refusal === undefined
    ? problem
    : { ...problem, status: refusal.status ?? problem.status, detail: refusal.message ?? problem.detail }

/** Bytes of bodies that are the same for every request. They are forgotten with their policy. */
const fixedBytes = new WeakMap<Refusal, Buffer>()

/** The body of a refusal; undefined for the problem that Weir answers with otherwise. */
export function ownBodyOf({ id = '', decision }: RecordedDecision, refusal: Refusal | undefined): OwnBody | undefined {
  if (refusal?.body === undefined) return undefined
  const { contentType: type, body } = refusal
  const known = fixedBytes.get(refusal)
  if (known !== undefined) return { type, bytes: known }
  const { reason, deniedBy: limit } = decision
  const values = { limit, reason, retry_after: `${retryAfterSeconds(decision)}`, decision: id }
  const bytes = Buffer.from(fillTemplate(body, values))
  if (namesInTemplate(body).length === 0) fixedBytes.set(refusal, bytes)
  return { type, bytes }
}
