import { counted, count as number, quantity, wait } from '@weir/core/format.ts'
import type { Reason } from '@weir/core/limits/decision.ts'
import { markersName } from '@weir/core/limits/exceeding.ts'
import { isGuess, type JudgedLimit, type PolicyFacts, type RecordedDecision } from './recorded-decision.ts'

const units = (value: number, { met }: Partial<Pick<JudgedLimit, 'met'>> = {}) => {
  const { unit = 'requests', currency } = met?.limit ?? {}
  if (currency !== undefined) return quantity(value, currency)
  return unit === 'requests' ? counted(value, 'unit') : `${number(value)} ${unit}`
}

const amount = (value: number, { met }: JudgedLimit) => quantity(value, met?.limit.currency)
const heldText = (limit: JudgedLimit) => (limit.held === 0 ? '' : `, ${amount(limit.held, limit)} of them only held`)

/** How much of a limit was used, and what the request needed. */
function standing(limit: JudgedLimit): string {
  const { name, size, used, needed } = limit
  if (used === undefined) return `${name} had no capacity for ${units(needed, limit)}`
  return `${name} had ${amount(used, limit)} of ${units(size, limit)} used${heldText(limit)}`
}

function refusedByCount(decision: RecordedDecision, judged: readonly JudgedLimit[]): string {
  const { cost, denied_by: deniedBy } = decision
  if (deniedBy === markersName) {
    return 'Refused: the subject has the maximum number of open idempotency keys and reservations.'
  }
  const first = judged.find(({ name }) => name === deniedBy)
  const others = judged.filter(({ name, refused }) => refused && name !== deniedBy)
  const also = others.length === 0 ? '' : ` So did ${others.map(standing).join(', ')}.`
  if (first?.used === undefined)
    return `Refused by ${deniedBy}: it had no capacity for ${units(first?.needed ?? cost, first)}.${also}`
  const { used, size, needed } = first
  const settled =
    used > size ? ` (${amount(used - size, first)} over, because of settled costs or a larger size earlier)` : ''
  return `Refused by ${deniedBy}: ${amount(Math.min(used, size), first)} of ${units(size, first)} were used${heldText(first)}${settled} and the request costs ${amount(needed, first)}.${also}`
}

/** What the first limit that refused does beyond refusing. */
function exceedText(judged: readonly JudgedLimit[], { denied_by: deniedBy }: RecordedDecision): string {
  const limit = judged.find(({ name }) => name === deniedBy)?.met?.limit
  if (limit === undefined) return ''
  const { onExceed, blockMs } = limit
  if (blockMs > 0) return ` ${deniedBy} then blocks the caller.`
  if (onExceed.kind === 'drop') return ' The connection was closed without a response.'
  if (onExceed.kind === 'challenge') return ' The client was redirected to the challenge page.'
  if (onExceed.kind !== 'delay') return ''
  return ` ${deniedBy} lets requests wait up to ${wait(onExceed.delayMs)}; the queue was full, or no capacity became free in time.`
}

const waitText = ({ retry_ms: retryMs = 0 }: RecordedDecision) =>
  retryMs > 0 ? ` It would have been allowed ${wait(retryMs)} later.` : ''

function neverText({ cost, denied_by: deniedBy }: RecordedDecision, judged: readonly JudgedLimit[]): string {
  const limit = judged.find(({ name }) => name === deniedBy)
  const most = limit === undefined ? 'less than that' : units(limit.size, limit)
  return `Refused by ${deniedBy}: the request costs ${limit === undefined ? number(cost) : amount(limit.needed, limit)}, and the limit never allows more than ${most} at once. Waiting does not help.`
}

const chargedText = {
  yes: ' Its units were charged.',
  no: ' Nothing was charged.',
  unknown: ' Whether its units were charged is unknown.',
} as const

function unavailableText(decision: RecordedDecision): string {
  const { outcome, denied_by: deniedBy, charged, retry_ms: retryMs = 0 } = decision
  if (outcome === 'allow') {
    return `Allowed without Redis, which did not respond in time: none of the request's limits refuses in that case.${chargedText[charged]}`
  }
  const again = retryMs > 0 ? ` The caller was told to try again after ${wait(retryMs)}.` : ''
  if (deniedBy !== '') {
    return `Refused because Redis did not respond in time, and ${deniedBy} refuses in that case.${chargedText[charged]}${again}`
  }
  return `Refused because the caller's token could not be checked, or the policy was too old.${chargedText[charged]}${again}`
}

function allowedText(decision: RecordedDecision): string {
  const { reason, mode, denied_by: deniedBy, shadowed_by: shadowedBy, limits, charged } = decision
  const degraded = mode === 'enforce' && reason === 'limit' && deniedBy !== ''
  const isShadowed = shadowedBy !== ''
  const shadow = isShadowed ? ` ${shadowedBy}, a shadow limit, would have refused it.` : ''
  if (degraded)
    return `Allowed although ${deniedBy} had no capacity. This limit marks such requests as degraded.${shadow}`
  if (isShadowed) return `Allowed.${shadow}`
  if (limits.length === 0) return 'Allowed: no limit applied.'
  return `Allowed: every limit had capacity.${charged === 'yes' ? '' : chargedText[charged]}`
}

/** A refusal by no limit: the policy of then tells a suspension, with its reason, from a block by hand. */
function byHandText(policy: PolicyFacts | undefined): string {
  if (policy === undefined) return 'Refused: the caller was blocked by hand or suspended. Nothing was charged.'
  if (policy.suspended === undefined) return 'Refused: the caller was blocked by hand. Nothing was charged.'
  return `Refused: the subject was suspended (${policy.suspended}). Nothing was charged.`
}

/** By reason. */
const deniedTexts: Readonly<
  Record<Reason, (decision: RecordedDecision, judged: readonly JudgedLimit[], policy?: PolicyFacts) => string>
> = {
  limit: (decision, judged) =>
    `${refusedByCount(decision, judged)}${exceedText(judged, decision)}${isGuess(judged) ? '' : waitText(decision)}`,
  blocked: (decision, _, policy) =>
    decision.denied_by === ''
      ? byHandText(policy)
      : `Refused by ${decision.denied_by}, which blocks the caller because of an earlier refusal.${waitText(decision)}`,
  cost_exceeds_limit: neverText,
  unauthorized: () => 'Refused: the request had no valid credential.',
  unavailable: unavailableText,
  journal_full: ({ charged }) =>
    `Refused because the decision could not be recorded: the journal was full.${chargedText[charged]}`,
  ok: () => 'Refused.',
}

/** Returns a decision in one or two sentences. */
export function summaryOf(
  decision: RecordedDecision,
  judged: readonly JudgedLimit[],
  policy: PolicyFacts | undefined,
): string {
  const { correction, outcome, reason, count } = decision
  if (correction !== undefined) {
    const { corrects, adjustment } = correction
    if (adjustment === 0) return `Corrects decision ${corrects}, only in the counts in Redis.`
    const change = adjustment < 0 ? `${units(-adjustment)} less` : `${units(adjustment)} more`
    return `Corrects decision ${corrects}: ${change} than recorded.`
  }
  const shared = outcome === 'deny' ? 'refusals within one second' : 'requests'
  const many = count > 1 ? ` This record covers ${number(count)} identical ${shared}.` : ''
  if (outcome === 'deny') return `${deniedTexts[reason](decision, judged, policy)}${many}`
  return `${reason === 'unavailable' ? unavailableText(decision) : allowedText(decision)}${many}`
}
