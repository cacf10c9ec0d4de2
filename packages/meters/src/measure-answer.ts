import type { UnitsBasis } from '@weir/core/limits/settlement.ts'
import { EventStream } from './event-stream.ts'
import { JsonPick } from './json-pick.ts'
import type { RequestMeasure } from './measure-request.ts'
import { type AfterSource, quantityInText, quantityMax, quantityOf } from './meter.ts'
import { type MeterReader, OwnFacts, quantityIn } from './meter-reader.ts'
import type { AnsweredBy, AnswerReading } from './presets/preset.ts'

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>

/** How an exchange ended. */
export interface ExchangeEnd {
  /** Nothing came of it that anybody would charge for, unless it says so. */
  readonly isFailed: boolean
  readonly bytesIn: number
  readonly bytesOut: number
  readonly durationMs: number
  readonly trailers: Headers
}

/** What an exchange used. */
export interface AnswerMeasure {
  readonly units: ReadonlyMap<string, number>
  readonly basis: UnitsBasis
  /** By which model and tier, as far as it says. */
  readonly by: AnsweredBy
}

/** What Weir itself measures: of a request that failed, nothing. */
const ownMeasures: readonly AfterSource['kind'][] = ['bytes_in', 'bytes_out', 'duration']

/** Events with text that are read whole before others are only looked through. */
const learnedMin = 4
const eventEnd = Buffer.from('\n\n')
/** Whether a piece is one event that has a name or data. */
const isOneEvent = (chunk: Buffer) =>
  (chunk[0] === 0x64 || chunk[0] === 0x65) && chunk.indexOf(eventEnd) === chunk.length - eventEnd.length

/** Reads an answer as it comes, behind its client. It keeps nothing of it but the quantities. */
export class AnswerMeter {
  readonly #reader: MeterReader
  readonly #preset: AnswerReading | undefined
  readonly #headers: Headers
  readonly #pick: JsonPick
  readonly #events: EventStream | undefined
  /** Whether what is read is JSON at all. */
  readonly #isRead: boolean
  /** What the meter's own units say in the body: of an event stream, in the event that is read. */
  readonly #facts: OwnFacts
  /** The last that each of them said. */
  readonly #said = new Map<string, number>()
  /** Events with text that were read whole, and the fewest bytes that one of them had around it. */
  #learned = 0
  #around = Number.POSITIVE_INFINITY

  constructor(reader: MeterReader, headers: Headers) {
    this.#reader = reader
    this.#headers = headers
    this.#preset = reader.preset?.readAnswer?.()
    this.#facts = new OwnFacts(reader.ownAnswer)
    const presetPatterns = reader.preset?.answerPatterns.length ?? 0
    this.#pick = new JsonPick(reader.answer, (pattern, fact) => {
      if (pattern < presetPatterns) this.#preset?.found(pattern, fact)
      this.#facts.found(pattern, fact)
    })
    const [type = ''] = String(headers['content-type'] ?? '').split(';', 1)
    const isStream = /^\s*text\/event-stream\s*$/i.test(type)
    this.#isRead = isStream || /[/+]json\s*$/i.test(type)
    if (!isStream) return
    this.#events = new EventStream({
      data: (piece) => void this.#pick.write(piece),
      ended: (name) => this.#eventEnded(name),
    })
  }

  write(chunk: Buffer): void {
    if (this.#events !== undefined) this.#writeEvents(this.#events, chunk)
    else if (this.#isRead) this.#pick.write(chunk)
  }

  /**
   * Of an event in a piece of its own that says no usage, only how long its text is matters. Once a few are read, that
   * is what goes beyond the least that the others have around their text.
   */
  #writeEvents(events: EventStream, chunk: Buffer): void {
    const { preset, ownAnswer } = this.#reader
    const seen = this.#preset?.seen
    const mark = ownAnswer.size === 0 && events.isBetweenEvents && isOneEvent(chunk) ? preset?.usageMark : undefined
    if (seen !== undefined && mark !== undefined && this.#learned >= learnedMin && !chunk.includes(mark)) {
      seen.events += 1
      seen.bytes += Math.max(0, chunk.length - this.#around)
      return
    }
    const before = seen?.bytes ?? 0
    events.write(chunk)
    if (seen === undefined || mark === undefined || seen.bytes === before) return
    this.#learned += 1
    this.#around = Math.min(this.#around, chunk.length - (seen.bytes - before))
  }

  #eventEnded(name: string): void {
    this.#take('sse', name)
    this.#facts.clear()
    this.#pick.reset()
    this.#preset?.eventBegins()
  }

  #take(kind: 'json' | 'sse', event?: string): void {
    for (const [unit, { after }] of this.#reader.meter.units) {
      if (after?.kind !== kind || (after.kind === 'sse' && (after.event ?? event) !== event)) continue
      const quantity = quantityOf(quantityIn(this.#facts.at(this.#reader.ownAnswer.get(after.pointer))))
      if (quantity !== undefined) this.#said.set(unit, quantity)
    }
  }

  /** What was used. What the answer says is so, whatever was held; what was only seen is at most what was held. */
  end(request: RequestMeasure, end: ExchangeEnd): AnswerMeasure {
    if (this.#events === undefined) this.#take('json')
    const units = new Map<string, number>()
    const basis = this.#addPreset(units, request, end)
    const unsaid = this.#addOwn(units, request, end)
    for (const [unit, used] of units) if (used > quantityMax) units.set(unit, quantityMax)
    return { units, basis: unsaid ?? basis, by: this.#preset?.by ?? {} }
  }

  #addPreset(
    units: Map<string, number>,
    { most, bytes }: RequestMeasure,
    { isFailed, bytesOut }: ExchangeEnd,
  ): UnitsBasis {
    const preset = this.#preset
    const reported = preset?.reported() ?? (isFailed ? {} : undefined)
    const isHeld = preset !== undefined && reported === undefined && this.#reader.meter.unsaid === 'hold'
    const isCounted = preset !== undefined && reported === undefined && !isHeld
    const found = isCounted ? preset.counted(bytes, bytesOut) : reported
    for (const unit of this.#reader.preset?.units ?? []) {
      const held = most.get(unit)
      const used = preset === undefined || isHeld ? held : (found?.[unit] ?? (held === undefined ? undefined : 0))
      if (used !== undefined) units.set(unit, isCounted ? Math.min(used, held ?? used) : used)
    }
    return isHeld ? 'bound' : isCounted ? 'counted' : 'reported'
  }

  /** Returns `bound` where one of them is not known: it stays as it was held. */
  #addOwn(units: Map<string, number>, { most }: RequestMeasure, end: ExchangeEnd): UnitsBasis | undefined {
    const { isFailed } = end
    let basis: UnitsBasis | undefined
    for (const [unit, { after }] of this.#reader.meter.units) {
      const held = most.get(unit) ?? 0
      const isOfNothing = isFailed && after !== undefined && ownMeasures.includes(after.kind)
      const said = after === undefined ? held : isOfNothing ? 0 : this.#quantity(unit, after, end)
      if (said === undefined && !isFailed) basis = 'bound'
      units.set(unit, said ?? (isFailed ? 0 : held))
    }
    return basis
  }

  #quantity(unit: string, source: AfterSource, end: ExchangeEnd): number | undefined {
    switch (source.kind) {
      case 'bytes_in':
        return end.bytesIn
      case 'bytes_out':
        return end.bytesOut
      case 'duration':
        return Math.ceil(end.durationMs / 1_000)
      case 'header':
        return quantityInText(this.#headers[source.name])
      case 'trailer':
        return quantityInText(end.trailers[source.name])
      default:
        return this.#said.get(unit)
    }
  }
}
