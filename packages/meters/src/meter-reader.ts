import type { Fact } from './json-pick.ts'
import type { Meter } from './meter.ts'
import { type Patterns, preparePatterns } from './patterns.ts'
import type { Preset } from './presets/preset.ts'
import { presets } from './presets/presets.ts'

/** A meter, prepared once for all of its exchanges. */
export interface MeterReader {
  readonly meter: Meter
  readonly preset: Preset | undefined
  /** Of the request's body; those of the preset come first. */
  readonly request: Patterns
  /** Of the answer, or of each event's data. */
  readonly answer: Patterns
  /** Whether anything before the decision is in the body. */
  readonly readsBody: boolean
  /** Whether the answer may change what was used. */
  readonly readsAnswer: boolean
  /** By pattern: the pointers of the meter's own units and dimensions. */
  readonly ownRequest: ReadonlyMap<string, number>
  readonly ownAnswer: ReadonlyMap<string, number>
}

const prepared = new WeakMap<Meter, MeterReader>()

/** Returns the same reader for the same meter. */
export function meterReaderOf(meter: Meter): MeterReader {
  const known = prepared.get(meter)
  if (known !== undefined) return known
  const reader = prepare(meter)
  prepared.set(meter, reader)
  return reader
}

function prepare(meter: Meter): MeterReader {
  const preset = meter.preset && presets[meter.preset]
  const sources = [...Array.from(meter.units.values(), ({ before }) => before), ...fromDimensions(meter)]
  const before = sources.flatMap((source) => (source?.kind === 'json' ? [source.pointer] : []))
  const after = Array.from(meter.units.values()).flatMap(({ after: source }) =>
    source?.kind === 'json' || source?.kind === 'sse' ? [source.pointer] : [],
  )
  const request = joined(preset?.requestPatterns ?? [], before)
  const answer = joined(preset?.answerPatterns ?? [], after)
  return {
    meter,
    preset,
    request: preparePatterns(request.pointers),
    answer: preparePatterns(answer.pointers),
    readsBody: request.pointers.length > 0,
    readsAnswer: preset?.readAnswer !== undefined || [...meter.units.values()].some((unit) => unit.after !== undefined),
    ownRequest: request.own,
    ownAnswer: answer.own,
  }
}

const fromDimensions = ({ dimensions }: Meter) => Array.from(dimensions.values(), ({ from }) => from)

/** Both lists without repeats, and where the pointers of the second stand. */
function joined(first: readonly string[], second: readonly string[]) {
  const pointers = [...new Set([...first, ...second])]
  return { pointers, own: new Map(second.map((pointer) => [pointer, pointers.indexOf(pointer)])) }
}

/** What stands at the pointers of a meter's own units and dimensions: the last of each. */
export class OwnFacts {
  readonly #positions: ReadonlySet<number>
  readonly #facts = new Map<number, Fact>()

  constructor(own: ReadonlyMap<string, number>) {
    this.#positions = new Set(own.values())
  }

  found(pattern: number, fact: Fact): void {
    if (this.#positions.has(pattern)) this.#facts.set(pattern, fact)
  }

  clear(): void {
    this.#facts.clear()
  }

  at(pattern: number | undefined): Fact | undefined {
    return pattern === undefined ? undefined : this.#facts.get(pattern)
  }
}

/** A number, or how many items a list has. */
export const quantityIn = (fact: Fact | undefined): unknown => (fact?.kind === 'list' ? fact.size : fact?.value)
