import { type Duration, durationMs, durationText } from './duration.ts'

/** A check: may this happen now? Every field means the same as in POST /v1/check. */
export interface CheckRequest {
  /** The subject to check: with a token give this or `key`; leave it out if the client has a subject's own key. */
  readonly subject?: string | undefined
  /** An API key of the subject that is checked. */
  readonly key?: string | undefined
  /** The address that limits by address count by. */
  readonly ip?: string | undefined
  /** A path, or a method and a path: `POST /v1/search`. */
  readonly route?: string | undefined
  readonly method?: string | undefined
  /** Units that the check charges; the route's cost if left out. */
  readonly cost?: number | undefined
  /** Quantities for limits with a `unit`, by its name; with `settle` they are held until then. */
  readonly units?: Readonly<Record<string, number>> | undefined
  /** The attributes that limits by `attribute:NAME` count by. */
  readonly attributes?: Readonly<Record<string, string | number>> | undefined
  /** For minutes the same key repeats an admission and charges once. It also allows a retry on a lost connection. */
  readonly idempotencyKey?: string | undefined
  /** A peek charges and records nothing. */
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
    units: request.units,
    attributes: request.attributes,
    idempotency_key: request.idempotencyKey,
    peek: request.peek,
    settle: optionalText(request.settle),
    wait: optionalText(request.wait),
  })

/** A duration of 0 is left out: Weir accepts durations above 0. */
const optionalText = (duration: Duration | undefined) =>
  duration === undefined || durationMs(duration) < 1 ? undefined : durationText(duration)
