import type { IncomingHttpHeaders } from 'node:http'
import type { OutcomeInput } from '@weir/contracts/outcome.v1.ts'
import type { RateBook } from '@weir/core/prices/rate-book.ts'
import type { Usage } from '@weir/decide/correct/usage-settler.ts'
import type { ChargedDecision } from '@weir/decide/types.ts'
import { AnswerMeter } from '@weir/meters/measure-answer.ts'
import type { RequestMeasure } from '@weir/meters/measure-request.ts'
import type { MeterReader } from '@weir/meters/meter-reader.ts'
import { decodeAnswer } from './decode-answer.ts'
import { withMoney } from './exchange-money.ts'
import type { RefusalForm } from './supplier-refusal.ts'
import { UsageEventFilter } from './usage-event.ts'

type EndedOutcome = Pick<OutcomeInput, 'status' | 'bytesIn' | 'bytesOut' | 'error'>

/** How long an exchange may last: what it holds counts as used then. */
export const exchangeMsMax = 12 * 3_600_000

/** One exchange's use, read while it goes by. */
export class MeteredExchange {
  readonly charged: ChargedDecision
  readonly #reader: MeterReader
  readonly #request: RequestMeasure
  /** The cards of the policy that decided it. */
  readonly #rates: RateBook | undefined
  #answer: AnswerMeter | undefined
  #filter: UsageEventFilter | undefined
  #trailers: IncomingHttpHeaders = {}
  /** Of an encoded answer, whose usage is known only once it ends. */
  decoder: ReturnType<typeof decodeAnswer> | undefined
  /** Its client has gone, and its answer is read on for what it says at its end. */
  isDrained = false

  constructor(reader: MeterReader, request: RequestMeasure, charged: ChargedDecision, rates?: RateBook) {
    this.#reader = reader
    this.#rates = rates
    this.#request = request
    this.charged = charged
  }

  begins(headers: IncomingHttpHeaders): void {
    const answer = new AnswerMeter(this.#reader, headers)
    this.#answer = answer
    const encoding = String(headers['content-encoding'] || 'identity').toLowerCase()
    if (encoding !== 'identity') this.decoder = decodeAnswer(encoding, (piece) => answer.write(piece))
    const isStream = String(headers['content-type'] ?? '').startsWith('text/event-stream')
    // An event cannot be taken out of what is encoded.
    if (isStream && this.#request.asksForUsage === true && this.decoder === undefined)
      this.#filter = new UsageEventFilter()
  }

  /** What the client gets of a piece: all of it, but for the usage that Weir alone asked for. */
  shown(chunk: Buffer): Buffer {
    return this.#filter?.pass(chunk) ?? chunk
  }

  /** What was kept back of an answer that has ended. */
  rest(): Buffer | undefined {
    return this.#filter?.rest()
  }

  /** Whether an answer is to be read to its end although its client has gone. */
  get drains(): boolean {
    return this.#reader.meter.drain
  }

  /** The form of errors that its client understands. */
  get form(): RefusalForm {
    return {
      preset: this.#reader.meter.preset,
      id: this.#request.id,
      isCall: (this.#request.most.get('calls') ?? 0) > 0,
    }
  }

  reads(chunk: Buffer): void {
    const reading = this.decoder ?? this.#answer
    reading?.write(chunk)
  }

  endsWith(trailers: IncomingHttpHeaders): void {
    this.#trailers = trailers
  }

  /** What it asked for and used, by OpenTelemetry's conventions. */
  attributes({ units }: Usage): SpanAttributes {
    const { dimensions } = this.#request
    return {
      'gen_ai.request.model': dimensions.get('model'),
      'gen_ai.tool.name': dimensions.get('tool'),
      ...Object.fromEntries(usageAttributes.map(([unit, name]) => [name, units.get(unit)])),
    }
  }

  /**
   * What it used. One that the upstream never had, or answered by an error, used nothing that it does not say. Of one
   * that is refunded the cost is 0.
   */
  usage(outcome: EndedOutcome, wasSent: boolean, durationMs: number, isRefunded: boolean): Usage {
    const { status, bytesIn, bytesOut, error } = outcome
    const isFailed = !wasSent || error === 'unreachable' || error === 'busy' || (error === '' && status >= 400)
    const answer = this.#answer ?? new AnswerMeter(this.#reader, {})
    const end = { isFailed, bytesIn, bytesOut, durationMs, trailers: this.#trailers }
    const measured = answer.end(this.#request, end)
    const { units, basis } = measured
    const money = this.#rates && withMoney(this.#rates, measured, this.#request, this.charged, isRefunded)
    return { units, basis, ...money, cost: isRefunded ? 0 : undefined }
  }
}

/** Attributes of a span. */
export type SpanAttributes = Readonly<Record<string, string | number | undefined>>

/** By unit, the attribute of OpenTelemetry's conventions for generative AI. */
const usageAttributes: readonly (readonly [string, string])[] = [
  ['input_tokens', 'gen_ai.usage.input_tokens'],
  ['output_tokens', 'gen_ai.usage.output_tokens'],
  ['cache_read_input_tokens', 'gen_ai.usage.cache_read.input_tokens'],
  ['cache_creation_input_tokens', 'gen_ai.usage.cache_creation.input_tokens'],
]

/** Undefined for a request whose use is known when it is decided, or whose decision has no record. */
export const meteredExchange = (
  reader: MeterReader | undefined,
  measure: RequestMeasure | undefined,
  charged: ChargedDecision | undefined,
  rates: RateBook | undefined,
): MeteredExchange | undefined =>
  reader?.readsAnswer && measure && charged ? new MeteredExchange(reader, measure, charged, rates) : undefined
