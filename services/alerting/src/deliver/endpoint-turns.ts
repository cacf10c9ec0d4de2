/** Attempts to one endpoint at a time while it takes what it is sent. */
const atOnceMax = 8
/** Failed attempts in a row after which an endpoint is left alone for a while. */
const failuresMax = 5
/** For so long at first; twice as long each time it fails again. */
const openFirstMs = 30_000
const openMaxMs = 600_000
/** All places are taken: asked again so much later. */
const busyMs = 1_000
/** Those that are put off ask again one behind the other, so that thousands do not ask every second. */
const spreadMs = 100
const spreadMaxMs = 60_000
/** Endpoints remembered: some 10 MB. Of more, those are forgotten first that take what they are sent. */
const endpointsMax = 50_000

interface Health {
  underWay: number
  failures: number
  openUntilMs: number
  /** When the one that was put off last asks again. */
  lastAskMs: number
}

/** Whether an attempt may be made now; if not, when to ask again. */
export type Turn = { readonly isFree: true } | { readonly isFree: false; readonly askAgainMs: number }

/**
 * Who may be sent to: an endpoint that hangs or fails holds few of the places, and one that goes on failing none but that of a probe, so
 * that the others never wait for it. Each process finds out for itself.
 */
export class EndpointTurns {
  readonly #healths = new Map<string, Health>()

  /** Takes a place if there is one; `leave` gives it back. */
  enter(endpoint: string, nowMs: number): Turn {
    const health = this.#health(endpoint, nowMs)
    // Whoever failed last is tried one at a time.
    const places = health.failures > 0 ? 1 : atOnceMax
    if (nowMs >= health.openUntilMs && health.underWay < places) {
      health.underWay += 1
      return { isFree: true }
    }
    const firstMs = nowMs < health.openUntilMs ? health.openUntilMs : nowMs + busyMs
    health.lastAskMs = Math.min(Math.max(firstMs, health.lastAskMs + spreadMs), firstMs + spreadMaxMs)
    return { isFree: false, askAgainMs: health.lastAskMs }
  }

  leave(endpoint: string, isGood: boolean, nowMs: number): void {
    const health = this.#health(endpoint, nowMs)
    health.underWay -= 1
    if (isGood) {
      health.failures = 0
      health.openUntilMs = 0
      return
    }
    // What was under way when it was left alone has nothing new to tell.
    if (nowMs < health.openUntilMs) return
    health.failures += 1
    const doublings = health.failures - failuresMax
    if (doublings >= 0) health.openUntilMs = nowMs + Math.min(openFirstMs * 2 ** doublings, openMaxMs)
  }

  /** Endpoints that are left alone now. */
  openCount(nowMs: number): number {
    let open = 0
    for (const { openUntilMs } of this.#healths.values()) if (nowMs < openUntilMs) open += 1
    return open
  }

  #health(endpoint: string, nowMs: number): Health {
    const known = this.#healths.get(endpoint)
    if (known !== undefined) return known
    if (this.#healths.size >= endpointsMax) this.#forget(nowMs)
    const health = { underWay: 0, failures: 0, openUntilMs: 0, lastAskMs: 0 }
    this.#healths.set(endpoint, health)
    return health
  }

  /** Makes room for a tenth, so that it does not run for each new endpoint: the idle that are well, then that failed, then that are left alone. */
  #forget(nowMs: number): void {
    const mayForget: ((health: Health) => boolean)[] = [
      ({ failures }) => failures === 0,
      ({ openUntilMs }) => nowMs >= openUntilMs,
      () => true,
    ]
    for (const may of mayForget) {
      for (const [name, health] of this.#healths) {
        if (this.#healths.size <= endpointsMax * 0.9) return
        if (health.underWay === 0 && may(health)) this.#healths.delete(name)
      }
    }
  }
}
