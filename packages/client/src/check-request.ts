import { type Duration, durationMs, durationText } from './duration.ts'

/** What is asked of Weir: may this happen now? Every field has the meaning of its namesake in POST /v1/check. */
export interface CheckRequest {
  /** Who is checked. With a subject's own key as the client's key, leave it out; with a token give this or `key`. */
  readonly subject?: string | undefined
  /** An API key of who is checked. */
  readonly key?: string | undefined
  /** For limits by address. */
  readonly ip?: string | undefined
  /** A path, or a method and a path: `POST /v1/search`. */
  readonly route?: string | undefined
  readonly method?: string | undefined
  /** Units; the route's if left out. */
  readonly cost?: number | undefined
  /** What limits by `attribute:NAME` count by. */
  readonly attributes?: Readonly<Record<string, string | number>> | undefined
  /** An admission under it is repeated for minutes and charged once. It also lets a lost connection be tried again. */
  readonly idempotencyKey?: string | undefined
  /** Look only: charges and records nothing. */
  readonly peek?: boolean | undefined
  /** How long `settle` can correct the cost: at most a day. */
  readonly settle?: Duration | undefined
  /** How long a denied check waits for capacity, in turn with others: at most a minute. */
  readonly wait?: Duration | undefined
}

/** The request as it goes over the wire. Fields that are undefined are not sent. */
export const checkBody = (request: CheckRequest): string =>
  JSON.stringify({
    subject: request.subject,
    key: request.key,
    ip: request.ip,
    route: request.route,
    method: request.method,
    cost: request.cost,
    attributes: request.attributes,
    idempotency_key: request.idempotencyKey,
    peek: request.peek,
    settle: optionalText(request.settle),
    wait: optionalText(request.wait),
  })

/** No time at all is left out: Weir takes durations above 0. */
const optionalText = (duration: Duration | undefined) =>
  duration === undefined || durationMs(duration) < 1 ? undefined : durationText(duration)
