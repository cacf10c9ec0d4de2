import type { ModelBounds } from '@weir/core/prices/rate-card.ts'
import type { Fact } from '../json-pick.ts'
import { type Meter, quantityMax, quantityOf } from '../meter.ts'

/** Quantities by unit. */
export type Quantities = Record<string, number>

/** What is read of one request's body. */
export interface RequestReading {
  found(pattern: number, fact: Fact): void
  /** What the whole of it says, with its bytes. `boundsOf` knows models for which the meter has no bounds. */
  measured(bytes: number, boundsOf?: BoundsOf): PresetRequest
}

/** Returns the most tokens of a model; undefined for one that is not known. */
export type BoundsOf = (model: string) => ModelBounds | undefined

/** Returns the meter, with a model's bounds where it has none. */
export function boundedMeter({ promptRatio, ...own }: Meter, model: string, boundsOf?: BoundsOf): Bounds {
  const { context, maxOutput } = boundsOf?.(model) ?? {}
  return { promptRatio, context: own.context ?? context, maxOutput: own.maxOutput ?? maxOutput }
}

/** What of a meter bounds a request. */
export type Bounds = Pick<Meter, 'promptRatio' | 'context' | 'maxOutput'>

/** A request as a preset reads it. */
export interface PresetRequest {
  /** The most that it can use; undefined where nothing bounds it. */
  readonly most: Quantities | undefined
  /** What it is counted by besides. */
  readonly dimensions: Readonly<Record<string, string>>
  /** Why it cannot be measured, for whom sent it. */
  readonly wrong?: string | undefined
  /** Its answer comes later, in another exchange: nothing here could meter it. */
  readonly isDeferred: boolean
  /** What its answer must have as its id, in JSON-RPC. */
  readonly id?: string | number | undefined
  /** It is streamed, and its answer would not say its usage unless it is asked to. */
  readonly lacksUsage?: boolean
}

/** What is read of one answer. */
export interface AnswerReading {
  readonly seen: SeenAnswer
  readonly by: AnsweredBy
  found(pattern: number, fact: Fact): void
  /** An event of a stream begins: what repeats in it is a list of its own. */
  eventBegins(): void
  /** What the answer said; undefined until it has. */
  reported(): Quantities | undefined
  /** What was seen of it, where it does not say: with the bytes of both bodies. */
  counted(bytesIn: number, bytesOut: number): Quantities
}

/** The model and the service tier that an answer says; undefined until it does. */
export interface AnsweredBy {
  model?: string
  tier?: string
}

/** One supplier's requests and answers. */
export interface Preset {
  /** The units that its answers report, all of them known for a request before. */
  readonly units: readonly string[]
  readonly dimensions: readonly string[]
  /** JSON pointers into the request, `*` for any item. */
  readonly requestPatterns: readonly string[]
  /** Into the answer, or into the data of each event. */
  readonly answerPatterns: readonly string[]
  /** What stands in each event that says what was used. */
  readonly usageMark?: Buffer
  readRequest(meter: Meter): RequestReading
  /** Absent where an answer changes nothing. */
  readonly readAnswer?: () => AnswerReading
}

/** Tools and roles add words of the supplier's own. */
const ownTokens = 2_048
/** The most that the suppliers' documents give for one. */
const tokensPerImage = 5_000
/** Tools that the supplier runs itself let the model read its own answers: so many times as a rule. */
const hostedRuns = 4

/** What bounds the tokens of a prompt, gathered while it is read. */
export class PromptBound {
  images = 0
  /** It names something that its bytes do not contain: a document, a file, an earlier conversation. */
  isBeyondBytes = false
  /** The supplier runs tools for it. */
  isHosted = false

  /** An image in the body, or by an address. */
  addImage(url: Fact): void {
    if (url.kind === 'text' && url.value.startsWith('data:')) this.images += 1
    else this.isBeyondBytes = true
  }

  /** Tokens that the model reads at most. Rare letters are a token a byte, so that a ratio of 1 is a proof. */
  input(bytes: number, { promptRatio, context }: Bounds): number | undefined {
    const most =
      this.isBeyondBytes || this.isHosted
        ? context
        : Math.ceil(bytes / promptRatio) + ownTokens + tokensPerImage * this.images
    return most === undefined ? undefined : most * this.runs
  }

  get runs(): number {
    return this.isHosted ? hostedRuns : 1
  }
}

/** Both halves of what a model does, and their sum. */
export const tokensOf = (input: number, output: number): Quantities => ({
  input_tokens: input,
  output_tokens: output,
  tokens: input + output,
})

/** What was seen of an answer: texts, and events. */
export interface SeenAnswer {
  bytes: number
  events: number
}

/**
 * A token of usual text has four bytes; of an answer as it is written, three at least, and an event has one. Of an
 * answer that could not be read, all bytes count.
 */
export function countedTokens(bytesIn: number, bytesOut: number, { bytes, events }: SeenAnswer): Quantities {
  const seen = bytes === 0 && events === 0 ? bytesOut : bytes
  return tokensOf(Math.ceil(bytesIn / 4), Math.max(events, Math.ceil(seen / 3)))
}

/** A bound that is none must not be taken for an absent one: other readers may make a number of it. */
export function readBound(name: string, fact: Fact): { readonly most?: number; readonly wrong?: string } {
  if (fact.kind === 'null') return {}
  const most = quantityOf(fact.value)
  return most === undefined ? { wrong: `${name} must be a whole number up to ${quantityMax}` } : { most }
}

/** Empty for what is no text. */
export const textIn = (fact: Fact): string => (fact.kind === 'text' ? fact.value : '')
