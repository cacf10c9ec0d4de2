import { JsonPick } from './json-pick.ts'
import { type BeforeSource, type Dimension, quantityInText, quantityMax, quantityOf } from './meter.ts'
import { type MeterReader, OwnFacts, quantityIn } from './meter-reader.ts'
import type { BoundsOf, RequestReading } from './presets/preset.ts'

/** A place outside the body. */
export type HeadSource = Exclude<BeforeSource, { readonly kind: 'json' }>

/** What a request says besides its body: none where it says nothing, several where readers may differ. */
export interface RequestHead {
  values(source: HeadSource): readonly string[]
}

/** What is known of a request's units before its answer. */
export interface RequestMeasure {
  /** The most that it can use of each unit; without those of a preset where nothing bounds them. */
  readonly most: ReadonlyMap<string, number>
  /** Nothing bounds what it can use: neither itself nor its meter says the most. */
  readonly isUnbounded: boolean
  /** Its answer comes in another exchange. */
  readonly isDeferred: boolean
  /** Its id, in JSON-RPC. */
  readonly id?: string | number | undefined
  /** It is to be asked for its usage, as the meter says. */
  readonly asksForUsage?: boolean
  /** As written, by the names of dimensions. */
  readonly dimensions: ReadonlyMap<string, string>
  readonly bytes: number
}

/** Why a request cannot be measured, for whom sent it. */
export interface MeasureProblem {
  readonly wrong: string
}

/** Longer values are none that anybody sums by. */
const valueLengthMax = 128

/** Reads a request as it comes. */
export class RequestMeter {
  readonly #reader: MeterReader
  readonly #head: RequestHead
  readonly #pick: JsonPick
  readonly #preset: RequestReading | undefined
  readonly #own: OwnFacts
  readonly #boundsOf: BoundsOf | undefined
  #bytes = 0

  /** `boundsOf` knows models for which the meter has no bounds. */
  constructor(reader: MeterReader, head: RequestHead, boundsOf?: BoundsOf) {
    this.#reader = reader
    this.#boundsOf = boundsOf
    this.#head = head
    this.#own = new OwnFacts(reader.ownRequest)
    this.#preset = reader.preset?.readRequest(reader.meter)
    const presetPatterns = reader.preset?.requestPatterns.length ?? 0
    this.#pick = new JsonPick(reader.request, (pattern, fact) => {
      if (pattern < presetPatterns) this.#preset?.found(pattern, fact)
      this.#own.found(pattern, fact)
    })
  }

  write(chunk: Buffer): void {
    this.#bytes += chunk.length
    this.#pick.write(chunk)
  }

  /** What the whole of it says. A request without a body says nothing, and a preset's has nothing to bound it. */
  end(): RequestMeasure | MeasureProblem {
    const { meter } = this.#reader
    const bytes = this.#bytes
    if (bytes > 0 && this.#reader.readsBody) {
      if (!this.#pick.end()) return { wrong: 'the body is not JSON' }
      if (this.#pick.isAmbiguous.includes(true))
        return { wrong: 'a member of the body occurs more than once, or in another spelling' }
    }
    const found = this.#preset?.measured(bytes, this.#boundsOf)
    if (found?.wrong !== undefined) return { wrong: found.wrong }
    const most = new Map(Object.entries(found?.most ?? {}))
    for (const [unit, { before, otherwise }] of meter.units) {
      const said = before === undefined ? undefined : this.#quantity(before)
      if (said !== undefined && quantityOf(said) === undefined) {
        return { wrong: `the quantity of ${unit} must be a whole number` }
      }
      most.set(unit, quantityOf(said) ?? otherwise)
    }
    const [unit] = [...most].find(([, quantity]) => quantityOf(quantity) === undefined) ?? []
    if (unit !== undefined) return { wrong: `it may use more than ${quantityMax} ${unit}` }
    const dimensions = new Map(Object.entries(found?.dimensions ?? {}))
    for (const [name, dimension] of meter.dimensions) dimensions.set(name, this.#value(dimension))
    const isUnbounded = found !== undefined && found.most === undefined
    const asksForUsage = meter.includeUsage && found?.lacksUsage === true
    return { most, isUnbounded, isDeferred: found?.isDeferred === true, id: found?.id, asksForUsage, dimensions, bytes }
  }

  /** A number; NaN for what is there and is none; undefined for what is not there. */
  #quantity(source: BeforeSource): number | undefined {
    if (source.kind === 'json') {
      const fact = this.#own.at(this.#reader.ownRequest.get(source.pointer))
      return fact === undefined ? undefined : (quantityOf(quantityIn(fact)) ?? Number.NaN)
    }
    const [text, ...more] = this.#head.values(source)
    if (text === undefined) return undefined
    return more.length > 0 ? Number.NaN : (quantityInText(text) ?? Number.NaN)
  }

  #value({ from }: Dimension): string {
    if (from.kind !== 'json') return this.#head.values(from)[0] ?? ''
    const { value } = this.#own.at(this.#reader.ownRequest.get(from.pointer)) ?? {}
    return value === undefined ? '' : String(value)
  }
}

/** Bounds what callers can invent: of each dimension a number of values a day. */
export class DimensionValues {
  /** By meter and dimension, the values of the day. */
  readonly #seen = new Map<string, Set<string>>()
  #day = 0

  /** The values as they are recorded, in the order of their names. */
  bounded(
    { meter, preset }: MeterReader,
    given: ReadonlyMap<string, string>,
    nowMs: number,
  ): ReadonlyMap<string, string> {
    const day = Math.floor(nowMs / 86_400_000)
    if (day !== this.#day) this.#seen.clear()
    this.#day = day
    const names = [...new Set([...(preset?.dimensions ?? []), ...meter.dimensions.keys()])].sort()
    return new Map(
      names.flatMap((name) => {
        const value = given.get(name) ?? ''
        const place = `${meter.name} ${name}`
        return value === '' ? [] : [[name, this.#bounded(place, value.toWellFormed(), meter.dimensions.get(name))]]
      }),
    )
  }

  #bounded(name: string, value: string, dimension: Dimension | undefined): string {
    const { values, max = presetValuesMax } = dimension ?? {}
    if (values !== undefined) return values.includes(value) ? value : other
    if (value.length > valueLengthMax) return other
    const seen = this.#seen.get(name) ?? new Set()
    this.#seen.set(name, seen)
    if (!seen.has(value) && seen.size >= max) return other
    seen.add(value)
    return value
  }
}

/** What all values beyond the bound are recorded as. */
const other = '_other'
/** Models of a supplier, tools of a server: more than there are. */
const presetValuesMax = 200
