import { markersName } from '@weir/core/limits/exceeding.ts'
import { retryAfterSeconds } from '@weir/core/limits/rate-limit-headers.ts'
import type { Refusal } from '@weir/policy/policy.ts'
import { fillTemplate } from '@weir/policy/template.ts'
import type { RecordedDecision } from '../decide/types.ts'
import type { ReplySettings } from './decision-reply.ts'

/** A body with its media type. */
export interface OwnBody {
  readonly type: string
  readonly bytes: Buffer
}

/** The route's refusal, where a limit refused: every other answer is Weir's own. */
export function ownRefusalOf({ decision }: RecordedDecision, refusal: Refusal | undefined): Refusal | undefined {
  const { reason, deniedBy } = decision
  return (reason === 'limit' || reason === 'blocked') && deniedBy !== markersName ? refusal : undefined
}

/** The settings with the dialect of the refusal. */
export const settingsOf = <S extends ReplySettings>(settings: S, refusal: Refusal | undefined): ReplySettings =>
  refusal?.dialect === undefined ? settings : { ...settings, dialect: refusal.dialect }

/** The body of a refusal; undefined for the problem that Weir answers with otherwise. */
export function ownBodyOf({ id = '', decision }: RecordedDecision, refusal: Refusal | undefined): OwnBody | undefined {
  if (refusal?.body === undefined) return undefined
  const { reason, deniedBy: limit } = decision
  const values = { limit, reason, retry_after: `${retryAfterSeconds(decision)}`, decision: id }
  return { type: refusal.contentType, bytes: Buffer.from(fillTemplate(refusal.body, values)) }
}
