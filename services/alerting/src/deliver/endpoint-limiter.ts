/** Concurrent attempts to one endpoint while it accepts alerts. */
const concurrencyMax = 8
/** Failed attempts in a row that open the circuit of an endpoint. */
const failuresMax = 5
/** How long the circuit stays open at first; the time doubles with each further failure. */
const openFirstMs = 30_000
const openMaxMs = 600_000
/** When no permit is free, the job asks again after this time. */
const busyMs = 1_000
/** Delayed jobs ask again one after the other, so that thousands do not ask every second. */
const spreadMs = 100
const spreadMaxMs = 60_000
/** Endpoints remembered, some 10 MB. Beyond it, healthy endpoints are forgotten first. */
const endpointsMax = 50_000

interface Health {
  inFlight: number
  failures: number
  openUntilMs: number
  /** When the job that was delayed last asks again. */
  lastAskMs: number
}

/** Says whether an attempt may be made now; if not, when to ask again. */
export type Permit = { readonly isGranted: true } | { readonly isGranted: false; readonly askAgainMs: number }

/**
 * Limits the concurrent attempts of each endpoint (a bulkhead and a circuit breaker): an endpoint that hangs or fails
 * holds few of the permits, and one that keeps failing holds a single one as a probe, so that other endpoints never
 * wait for it. Each process learns by itself.
 */
export class EndpointLimiter {
  readonly #healths = new Map<string, Health>()

  /** Grants a permit if one is free; `release` returns it. */
  acquire(endpoint: string, nowMs: number): Permit {
    const health = this.#health(endpoint, nowMs)
    // An endpoint whose last attempt failed gets one attempt at a time.
    const permits = health.failures > 0 ? 1 : concurrencyMax
    if (nowMs >= health.openUntilMs && health.inFlight < permits) {
      health.inFlight += 1
      return { isGranted: true }
    }
    const firstMs = nowMs < health.openUntilMs ? health.openUntilMs : nowMs + busyMs
    health.lastAskMs = Math.min(Math.max(firstMs, health.lastAskMs + spreadMs), firstMs + spreadMaxMs)
    return { isGranted: false, askAgainMs: health.lastAskMs }
  }

  release(endpoint: string, isGood: boolean, nowMs: number): void {
    const health = this.#health(endpoint, nowMs)
    health.inFlight -= 1
    if (isGood) {
      health.failures = 0
      health.openUntilMs = 0
      return
    }
    // Attempts that were in flight when the circuit opened say nothing new.
    if (nowMs < health.openUntilMs) return
    health.failures += 1
    const doublings = health.failures - failuresMax
    if (doublings >= 0) health.openUntilMs = nowMs + Math.min(openFirstMs * 2 ** doublings, openMaxMs)
  }

  /** Lists the endpoints whose circuits are open now. */
  *open(nowMs: number): Iterable<string> {
    for (const [name, { openUntilMs }] of this.#healths) if (nowMs < openUntilMs) yield name
  }

  #health(endpoint: string, nowMs: number): Health {
    const known = this.#healths.get(endpoint)
    if (known !== undefined) return known
    if (this.#healths.size >= endpointsMax) this.#forget(nowMs)
    const health = { inFlight: 0, failures: 0, openUntilMs: 0, lastAskMs: 0 }
    this.#healths.set(endpoint, health)
    return health
  }

  /**
   * Frees a tenth, so that it does not run for each new endpoint. Idle endpoints go in this order: the healthy, those
   * that failed, those whose circuit is open.
   */
  #forget(nowMs: number): void {
    const mayForget: ((health: Health) => boolean)[] = [
      ({ failures }) => failures === 0,
      ({ openUntilMs }) => nowMs >= openUntilMs,
      () => true,
    ]
    for (const may of mayForget) {
      for (const [name, health] of this.#healths) {
        if (this.#healths.size <= endpointsMax * 0.9) return
        if (health.inFlight === 0 && may(health)) this.#healths.delete(name)
      }
    }
  }
}
