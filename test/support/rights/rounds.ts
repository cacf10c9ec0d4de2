import { randomUUID } from 'node:crypto'
import { topics } from '@weir/contracts/topics.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import type { Producer } from 'kafkajs'
import type { SecuredWeir } from './secured-weir.ts'

/** What one round asks of every service: together it uses each right of each. */
export interface Round {
  readonly subject: string
  /** Of the request through the proxy. */
  readonly status: number
  /** What the console has not answered with success yet. */
  readonly asked: Map<string, () => ReturnType<SecuredWeir['ask']>>
}

const letterTopics = [topics.decisionsDeadLetters, topics.outcomesDeadLetters, topics.alertsDeadLetters]

/** Rounds of work, one after the other. Closed by who has made it. */
export class Rounds {
  readonly #weir: SecuredWeir
  readonly #producer: Producer
  #count = 0
  /** Of the round before, whose alert is delivered once more. */
  #before: { readonly subject: string; readonly alert: string } | undefined

  constructor(weir: SecuredWeir) {
    this.#weir = weir
    this.#producer = weir.kafka.client.producer()
  }

  /** A request that raises an alert, a record that cannot be read on each topic, and what only the console does. */
  async begin(): Promise<Round> {
    const subject = `s-${randomUUID()}`
    const { ask, request } = this.#weir
    this.#count += 1
    const status = await request(subject)
    await this.#producer.connect() // does nothing where it is connected
    for (const topic of [topics.decisions, topics.outcomes, topics.alerts])
      await this.#producer.send({ topic, messages: [{ key: subject, value: '{"v":1,' }] })
    const limit = { algorithm: 'fixed_window', size: this.#count + 1, window: '1m' }
    const asked = new Map([
      ['policy', () => ask('PUT', '/v1/limits/probe', limit)],
      ['test', () => ask('POST', '/v1/endpoints/ops/test')],
    ])
    const { alert } = this.#before ?? {}
    if (alert !== undefined) asked.set('redeliver', () => ask('POST', `/v1/alerts/${alert}/redeliver`))
    return { subject, status, asked }
  }

  /** Asks the console for what it has not done yet; gives the answers of those that fail. */
  async askConsole({ asked }: Round): Promise<string> {
    let refused = ''
    for (const [what, ask] of asked) {
      const { status, text } = await ask()
      if (status < 300) asked.delete(what)
      else refused += text
    }
    return refused
  }

  /** Waits until all of the round is done, and all services are ready. */
  async finish(round: Round): Promise<void> {
    let left = ''
    const isDone = async () => {
      left = [...(await this.#missing(round)), ...(await this.#notReady())].join('\n')
      return left === ''
    }
    if (!(await waitUntil(isDone, { deadlineMs: 60_000, everyMs: 200 }))) throw new Error(`not done:\n${left}`)
    const [alert] = await this.#rows<{ id: string }>(`SELECT id FROM weir.alerts WHERE subject = '${round.subject}'`)
    this.#before = { subject: round.subject, alert: alert?.id ?? '' }
  }

  /** Of all rounds: how many there were, and how many decisions ClickHouse has. */
  async sums() {
    const query = `SELECT toUInt32(sum(count)) AS decisions, toUInt32(uniqExact(id)) AS ids,
      toUInt32(uniqExact(subject)) AS subjects FROM weir.decisions`
    const [sums] = await this.#rows<Readonly<Record<'decisions' | 'ids' | 'subjects', number>>>(query)
    return { rounds: this.#count, ...sums }
  }

  close(): Promise<void> {
    return this.#producer.disconnect()
  }

  #rows<T>(query: string): Promise<T[]> {
    return this.#weir.tables.rows<T>(query)
  }

  async #deliveriesOf(subject: string): Promise<number> {
    const where = `subject = '${subject}' AND outcome = 'delivered'`
    const [row] = await this.#rows<{ n: string }>(`SELECT count() AS n FROM weir.deliveries FINAL WHERE ${where}`)
    return Number(row?.n)
  }

  async #lettersIn(topic: string): Promise<number> {
    const offsets = await this.#weir.kafka.admin.fetchTopicOffsets(topic)
    return offsets.reduce((sum, { high }) => sum + Number(high), 0)
  }

  async #missing(round: Round): Promise<string[]> {
    const { subject } = round
    const [counted] = await this.#rows<Record<string, string>>(`SELECT
      (SELECT sum(count) FROM weir.decisions WHERE subject = '${subject}') AS decisions,
      (SELECT sum(count) FROM weir.usage_15m WHERE subject = '${subject}') AS usage,
      (SELECT count() FROM weir.outcomes WHERE subject = '${subject}') AS outcomes,
      (SELECT uniqExact(id) FROM weir.alerts WHERE subject = '${subject}') AS alerts`)
    const problems = Object.entries(counted ?? { no: 'answer' }).filter(([, count]) => Number(count) !== 1)
    if ((await this.#deliveriesOf(subject)) === 0) problems.push(['deliveries', '0'])
    if (this.#before !== undefined && (await this.#deliveriesOf(this.#before.subject)) < 2)
      problems.push(['deliveries once more', '0'])
    for (const topic of letterTopics) {
      const letters = await this.#lettersIn(topic)
      if (letters < this.#count) problems.push([topic, String(letters)])
    }
    const refused = await this.askConsole(round)
    if (refused !== '') problems.push(['console', refused])
    return problems.map((problem) => problem.join(' '))
  }

  async #notReady(): Promise<string[]> {
    const services = Object.entries(this.#weir.services)
    const ready = await Promise.all(services.map(async ([name, one]) => ({ name, ...(await one.ready()) })))
    return ready
      .filter(({ status, text }) => status !== 200 || text.includes('lacks'))
      .map(({ name, text }) => `${name}: ${text}`)
  }
}
