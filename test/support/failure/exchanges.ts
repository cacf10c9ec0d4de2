import { after } from '../after.ts'
import type { SeededRandom } from '../seeded-random.ts'
import { until } from '../until.ts'
import { holdMs, keyOfExchanges } from './exchanges-policy.ts'

/** After this a check that cannot be renewed has no slot any more: it is over before that for certain. */
const renewEveryMs = 5_000
const answerMs = 5_000

export interface Doors {
  readonly api: string
  readonly ingress: string
  readonly upstream: string
  /** Exchanges take up to this; one of twenty checks several seconds. */
  readonly longestMs: number
}

/** Work at the upstream that takes `ms`, by who was admitted without the proxy. Ends early with the signal. */
export async function workAt(upstream: string, subject: string, ms: number, leave?: AbortSignal): Promise<void> {
  const headers = { 'x-weir-subject': subject, 'x-ms': `${ms}` }
  const answer = await fetch(upstream, { headers, signal: leave ?? null }).catch(() => undefined)
  await answer?.text().catch(() => '')
}

/** What a subject's exchanges did, by what their client knows. */
export class SubjectExchanges {
  readonly subject: string
  /** Tokens in a month. */
  readonly size: number
  /** Tokens of checks whose answer never came. */
  unknown = 0
  /**
   * Tokens that are held or used for certain, and the most that there were: what is settled is held no more from the
   * moment when this is asked for.
   */
  charged = 0
  mostCharged = 0
  /** What settlements gave back, and when. */
  readonly givenBack: { readonly atMs: number; readonly tokens: number }[] = []
  /** Settlements that were not answered, to be repeated. */
  readonly unanswered: { readonly id: string; readonly tokens: number }[] = []
  readonly counts = { proxied: 0, checked: 0, refused: 0, short: 0, lost: 0 }
  readonly #doors: Doors

  constructor(subject: string, size: number, doors: Doors) {
    this.subject = subject
    this.size = size
    this.#doors = doors
  }

  get #headers() {
    return { 'content-type': 'application/json', authorization: `Bearer ${keyOfExchanges(this.subject)}` }
  }

  /** The answer with its status; undefined where none came. */
  async ask(path: string, body: object) {
    const how = { method: 'POST', headers: this.#headers, body: JSON.stringify(body) }
    const signal = AbortSignal.timeout(answerMs)
    const answer = await fetch(`${this.#doors.api}${path}`, { ...how, signal }).catch(() => undefined)
    const found = (await answer?.json().catch(() => undefined)) as Answer | undefined
    return answer === undefined || found === undefined ? undefined : { ...found, status: answer.status }
  }

  /** What is used of its tokens and what is left, and whether so many more are there. */
  async peek(tokens = 0) {
    const answer = await this.ask('/v1/check', { peek: true, units: { tokens } })
    const isOfTokens = ({ name }: { readonly name: string }) => name.startsWith('tokens')
    const { used = Number.NaN, remaining = Number.NaN } = answer?.limits?.find(isOfTokens) ?? {}
    return { allowed: answer?.allowed, used, remaining }
  }

  /** One exchange of random length that ends in some way. */
  async exchange(random: SeededRandom): Promise<void> {
    await (random.oneIn(2) ? this.#proxied(random) : this.#checked(random))
  }

  async #proxied(random: SeededRandom): Promise<void> {
    const headers = {
      ...this.#headers,
      'x-ms': `${random.integer(0, this.#doors.longestMs)}`,
      'x-end': random.pick(['', '', '500', 'close']),
    }
    const signal = random.oneIn(8) ? AbortSignal.timeout(random.integer(1, 200)) : AbortSignal.timeout(60_000)
    const answer = await fetch(`${this.#doors.ingress}/v1/answers`, { headers, signal }).catch(() => undefined)
    await answer?.text().catch(() => '')
    this.counts[answer === undefined ? 'lost' : answer.status === 429 ? 'refused' : 'proxied'] += 1
  }

  async #checked(random: SeededRandom): Promise<void> {
    const held = random.integer(1, 200)
    const check = await this.ask('/v1/check', { units: { tokens: held }, settle: `${holdMs}ms` })
    if (check === undefined || check.status >= 500) {
      this.unknown += held
      this.counts.lost += 1
      return
    }
    if (check.allowed !== true || check.id === undefined) {
      this.counts[check.denied_by?.startsWith('tokens') ? 'short' : 'refused'] += 1
      return
    }
    this.charged += held
    this.mostCharged = Math.max(this.mostCharged, this.charged)
    const { id } = check
    const long = random.oneIn(20) ? random.integer(5_000, 12_000) : random.integer(0, this.#doors.longestMs)
    const isHeld = await this.#work(id, long)
    this.counts.checked += 1
    if (!isHeld || random.oneIn(10)) return // never settled: it stays as it was held
    const tokens = random.oneIn(4) ? 0 : random.integer(0, held)
    this.charged -= held - tokens
    this.givenBack.push({ atMs: performance.now(), tokens: held - tokens })
    if (!(await this.#settle(id, tokens))) this.unanswered.push({ id, tokens })
  }

  /** Resolves to whether the check still has its slot for certain. */
  async #work(id: string, ms: number): Promise<boolean> {
    const leave = new AbortController()
    let isOver = false
    const over = workAt(this.#doors.upstream, this.subject, ms, leave.signal).then(() => {
      isOver = true
    })
    let renewedMs = performance.now()
    for (;;) {
      await Promise.race([over, after(renewEveryMs)])
      if (isOver) return true
      const askedMs = performance.now()
      if ((await this.ask('/v1/renew', { id }))?.status === 200) renewedMs = askedMs
      else if (performance.now() - renewedMs > holdMs / 2) {
        leave.abort()
        await over
        return false
      }
    }
  }

  /** Resolves to whether it was answered. */
  async #settle(id: string, tokens: number): Promise<boolean> {
    const answer = await (tokens === 0
      ? this.ask('/v1/release', { id })
      : this.ask('/v1/settle', { id, units: { tokens } }))
    return answer !== undefined && answer.status < 500
  }

  /** Repeats what was not answered, until it is. */
  async repeatUnanswered(): Promise<void> {
    for (const { id, tokens } of this.unanswered.splice(0)) await until(() => this.#settle(id, tokens), 150_000)
  }
}

interface Answer {
  readonly id?: string
  readonly allowed?: boolean
  readonly denied_by?: string
  readonly limits?: readonly { readonly name: string; readonly used: number; readonly remaining: number }[]
}
