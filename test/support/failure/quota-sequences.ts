import { createHash } from 'node:crypto'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import type { SeededRandom } from '../seeded-random.ts'

/** Units a month of each subject; who wants more is blocked. */
const size = 60
const flakyCost = 7
/** A refund takes a call to Redis, which may make it after its caller has given up: on a busy machine seconds later. */
const refundDeadlineMs = 30_000
const keyOf = (subject: string) => `weir_sequence_${subject}_0123456789abcdef`
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

/** Subjects with one quota, behind an upstream that fails each request. */
export const sequencesPolicy = (subjects: readonly string[], upstream: string) => `version: 1
plans: { quota: { limits: [month] } }
limits: { month: { algorithm: fixed_window, size: ${size}, period: month, block: 6h, onUnavailable: deny } }
routes: [ { match: "POST /flaky", cost: ${flakyCost}, refundOn: [503] } ]
upstreams: { flaky: { url: "${upstream}", hosts: ["*"] } }
subjects:
${subjects.map((one) => `  ${one}: { plan: quota, keys: [{ sha256: "${sha256(keyOf(one))}" }] }`).join('\n')}
`

/** Where operations go. */
export interface Doors {
  readonly api: string
  readonly ingress: string
  readonly console: string
  readonly token: string
}

interface Answer {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

async function post(url: string, headers: Readonly<Record<string, string>>, body?: object): Promise<Answer> {
  const answer = await fetch(url, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  return { status: answer.status, body: text.startsWith('{') ? JSON.parse(text) : {} }
}

/** What one subject has used, by a model of what was done to it. */
export class QuotaSequence {
  readonly subject: string
  /** Requests whose refund Redis did not take, in its time. */
  unrefunded = 0
  readonly #doors: Doors
  /** Units that Redis is to count. */
  #used = 0
  /** Units by the records: an earlier charge that is refunded after a reset lowers it below what is used. */
  #recorded = 0
  #isCounted = false
  #isBlocked = false
  readonly #open: { readonly id: string; readonly cost: number }[] = []

  constructor(subject: string, doors: Doors) {
    this.subject = subject
    this.#doors = doors
  }

  get used(): number {
    return this.#used
  }

  /** Units by which Redis counts more than there are records: of refunds that came after a reset. */
  get unrecorded(): number {
    return this.#used - Math.max(0, this.#recorded)
  }

  /** Redis has lost all its data, what is to be settled too, and the console has restored what records say. */
  lose(): void {
    this.#open.length = 0
    this.#used = Math.max(0, this.#recorded)
    this.#isCounted = this.#used > 0
    this.#isBlocked = false
  }

  /** Does one thing at random, and throws if it is answered otherwise than the model has it. */
  async step(random: SeededRandom): Promise<void> {
    const kind = random.pick(['charge', 'charge', 'reserve', 'reserve', 'settle', 'settle', 'flaky', 'change'])
    if (kind === 'flaky') return await this.#flaky()
    if (kind === 'settle') return await this.#settle(random)
    if (kind === 'change') return await this.#change(random.pick(['reset', 'unblock', 'forget']))
    const cost = random.integer(1, 9)
    const more = kind === 'reserve' ? { settle: '2h' } : {}
    const { body } = await this.#ask('check', { method: 'GET', route: '/x', cost, ...more })
    this.#expect(body.allowed, this.#admits(cost), `${kind} of ${cost}`)
    if (body.allowed !== true) return
    this.#add(cost)
    if (kind === 'reserve') this.#open.push({ id: String(body.id), cost })
  }

  /** Units that Redis counts. */
  async peek(): Promise<number> {
    const { body } = await this.#ask('check', { method: 'GET', route: '/x', cost: 0, peek: true })
    const [limit] = Array.isArray(body.limits) ? body.limits : []
    return Number(limit?.used)
  }

  #ask(path: string, body: object): Promise<Answer> {
    const { api, token } = this.#doors
    return post(`${api}/v1/${path}`, { authorization: `Bearer ${token}` }, { subject: this.subject, ...body })
  }

  #expect(found: unknown, wanted: unknown, what: string): void {
    if (found === wanted) return
    throw new Error(`${this.subject}, ${what} at ${this.#used}: ${String(found)} instead of ${String(wanted)}`)
  }

  /** Whether a charge is to be admitted; one that does not fit blocks. */
  #admits(cost: number): boolean {
    if (this.#isBlocked) return false
    this.#isBlocked = this.#used + cost > size
    return !this.#isBlocked
  }

  #add(units: number): void {
    this.#recorded += units
    if (units > 0) this.#isCounted = true
    if (this.#isCounted) this.#used = Math.max(0, this.#used + units)
  }

  async #flaky(): Promise<void> {
    const { status } = await post(`${this.#doors.ingress}/flaky`, { 'x-api-key': keyOf(this.subject) }, {})
    const isAdmitted = this.#admits(flakyCost)
    this.#expect(status, isAdmitted ? 503 : 429, 'flaky')
    if (!isAdmitted) return
    this.#isCounted = true
    // The answer does not wait for the refund, and a refund that Redis does not take in time is not repeated: on a busy
    // machine some stay charged, as the record says.
    const isBack = async () => (await this.peek()) === this.#used
    if ((await waitUntil(isBack, { deadlineMs: refundDeadlineMs, everyMs: 5 })) === true) return
    this.unrefunded += 1
    this.#used += flakyCost
  }

  async #settle(random: SeededRandom): Promise<void> {
    const [one] = this.#open.splice(random.integer(0, Math.max(0, this.#open.length - 1)), 1)
    if (one === undefined) return
    const cost = random.integer(0, 2 * one.cost)
    const { status } = await this.#ask('settle', { id: one.id, cost })
    this.#expect(status, 200, `settle of ${one.id}`)
    if (cost !== one.cost) this.#add(cost - one.cost)
  }

  async #change(change: 'reset' | 'unblock' | 'forget'): Promise<void> {
    const { console, token } = this.#doors
    const headers = { authorization: `Bearer ${token}` }
    let path = `/v1/subjects/${this.subject}/limits/${change}`
    if (change === 'forget') {
      const { body } = await post(`${console}/v1/blocks?subject=${this.subject}`, headers)
      const [block] = Array.isArray(body.blocks) ? body.blocks : []
      if (block === undefined) return
      path = `/v1/blocks/${block.id}/lift`
    }
    const { status } = await post(`${console}${path}`, headers, change === 'forget' ? { forget: true } : {})
    this.#expect(status, 200, change)
    this.#isBlocked = false
    if (change === 'unblock') return
    this.#recorded -= this.#used
    this.#used = 0
    this.#isCounted = false
  }
}

/** Runs `act` on all, some at a time: what a console of one process does without refusing any. */
export async function onAll(all: readonly QuotaSequence[], act: (one: QuotaSequence) => Promise<unknown>) {
  const left = all.values()
  const atOnce = 32
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (const one of left) await act(one)
    }),
  )
}
