import { createHash } from 'node:crypto'
import type { SeededRandom } from '../seeded-random.ts'
import { until } from '../until.ts'

/** How many exchanges of a subject may be in flight, and how many tokens it has in a month. */
export const [slotsMax, tokensMax] = [5, 1_000_000]
/** How long a check's slot and its tokens are held. */
export const holdMs = 30_000
/** After this a check that cannot be renewed has no slot any more: it is over before that for certain. */
const renewEveryMs = 5_000

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

/** Each subject has slots by proxy and check, tokens by check. */
export const exchangesPolicy = (subjects: readonly string[], upstream: string): string =>
  JSON.stringify({
    version: 1,
    plans: { ai: { limits: ['in-flight', 'tokens'] } },
    limits: {
      'in-flight': { algorithm: 'concurrency', size: slotsMax, onUnavailable: 'deny' },
      tokens: { algorithm: 'fixed_window', period: 'month', size: tokensMax, unit: 'tokens', onUnavailable: 'deny' },
    },
    upstreams: { counting: { url: upstream, hosts: ['*'], timeout: '2m' } },
    subjects: Object.fromEntries(
      subjects.map((name) => [name, { plan: 'ai', keys: [{ sha256: sha256(`key-of-${name}`) }] }]),
    ),
  })

interface Doors {
  readonly api: string
  readonly ingress: string
}

/** What a subject's exchanges did, by what their client knows. */
export class SubjectExchanges {
  readonly subject: string
  /** Checks in flight now, and the most that there were with those of the upstream. */
  checks = 0
  /** Tokens that were settled, and those of checks whose answer or settlement never came. */
  settled = 0
  unknown = 0
  /** Settlements that were not answered, to be repeated. */
  readonly unanswered: { readonly id: string; readonly tokens: number; readonly held: number }[] = []
  readonly counts = { proxied: 0, checked: 0, refused: 0, lost: 0 }
  readonly #doors: Doors
  readonly #inFlight: () => number
  most = 0

  /** @param inFlight how many of its requests the upstream has */
  constructor(subject: string, doors: Doors, inFlight: () => number) {
    this.subject = subject
    this.#doors = doors
    this.#inFlight = inFlight
  }

  get #headers() {
    return { 'content-type': 'application/json', authorization: `Bearer key-of-${this.subject}` }
  }

  /** The answer with its status; undefined where none came. */
  async ask(path: string, body: object) {
    const how = { method: 'POST', headers: this.#headers, body: JSON.stringify(body) }
    const signal = AbortSignal.timeout(5_000)
    const answer = await fetch(`${this.#doors.api}${path}`, { ...how, signal }).catch(() => undefined)
    const found = (await answer?.json().catch(() => undefined)) as Answer | undefined
    return answer === undefined || found === undefined ? undefined : { ...found, status: answer.status }
  }

  #note(): void {
    this.most = Math.max(this.most, this.checks + this.#inFlight())
  }

  /** One exchange of random length that ends in some way. */
  async exchange(random: SeededRandom): Promise<void> {
    await (random.oneIn(2) ? this.#proxied(random) : this.#checked(random))
  }

  async #proxied(random: SeededRandom): Promise<void> {
    const headers = {
      ...this.#headers,
      'x-ms': `${random.integer(0, 400)}`,
      'x-end': random.pick(['', '', '500', 'close']),
    }
    const signal = random.oneIn(8) ? AbortSignal.timeout(random.integer(1, 200)) : AbortSignal.timeout(60_000)
    const answer = await fetch(`${this.#doors.ingress}/v1/answers`, { headers, signal }).catch(() => undefined)
    await answer?.text().catch(() => '')
    this.counts[answer === undefined ? 'lost' : answer.status === 429 ? 'refused' : 'proxied'] += 1
    this.#note()
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
      this.counts.refused += 1
      return
    }
    this.checks += 1
    this.#note()
    const { id } = check
    const long = random.oneIn(20) ? random.integer(5_000, 12_000) : random.integer(0, 400)
    const isHeld = await this.#work(id, long)
    this.checks -= 1
    this.counts.checked += 1
    if (!isHeld || random.oneIn(10)) return // never settled: it stays as it was held
    const tokens = random.oneIn(4) ? 0 : random.integer(0, held)
    if (!(await this.settle(id, tokens))) this.unanswered.push({ id, tokens, held })
  }

  /** Resolves to whether the check still has its slot for certain. */
  async #work(id: string, ms: number): Promise<boolean> {
    const endMs = performance.now() + ms
    let renewedMs = performance.now()
    let isHeld = true
    await until(async () => {
      const nowMs = performance.now()
      if (isHeld && nowMs - renewedMs > renewEveryMs) {
        const renewed = await this.ask('/v1/renew', { id })
        if (renewed?.status === 200) renewedMs = nowMs
        else isHeld = performance.now() - renewedMs < holdMs / 2
      }
      return !isHeld || performance.now() >= endMs
    }, 60_000)
    return isHeld
  }

  /** Resolves to whether it was answered. */
  async settle(id: string, tokens: number): Promise<boolean> {
    const answer = await (tokens === 0
      ? this.ask('/v1/release', { id })
      : this.ask('/v1/settle', { id, units: { tokens } }))
    return answer !== undefined && answer.status < 500
  }

  /** Repeats what was not answered, until it is. */
  async repeatUnanswered(): Promise<void> {
    for (const { id, tokens } of this.unanswered.splice(0)) await until(() => this.settle(id, tokens), 150_000)
  }
}

interface Answer {
  readonly id?: string
  readonly allowed?: boolean
  readonly limits?: readonly { readonly name: string; readonly used: number; readonly remaining: number }[]
}
