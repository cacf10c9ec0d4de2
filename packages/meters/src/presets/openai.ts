import type { Fact } from '../json-pick.ts'
import { type Meter, quantityOf } from '../meter.ts'
import {
  type AnswerReading,
  countedTokens,
  type Preset,
  PromptBound,
  type Quantities,
  type RequestReading,
  textIn,
  tokensOf,
} from './preset.ts'

/** What is gathered of a request. */
interface OpenAiFacts {
  readonly prompt: PromptBound
  readonly meter: Meter
  model: string
  isDeferred: boolean
  isStreamed: boolean
  hasOptions: boolean
  choices: number
  /** By each name that bounds them. */
  readonly mostOutput: number[]
}

type Take = (of: OpenAiFacts, fact: Fact) => void

/** Parts of a prompt whose tokens its own bytes bound. All others are taken for documents. */
const boundedParts: ReadonlySet<string> = new Set(
  (
    'text input_text output_text refusal message reasoning summary_text reasoning_text function_call ' +
    // Images say by their address what they are.
    'function_call_output custom_tool_call custom_tool_call_output image_url input_image'
  ).split(' '),
)
/** Tools that the caller runs. */
const callersTools: ReadonlySet<string> = new Set(['function', 'custom'])

const takeMost: Take = ({ mostOutput }, { value }) => {
  const most = quantityOf(value)
  if (most !== undefined) mostOutput.push(most)
}
const takePart: Take = ({ prompt }, fact) => {
  if (!boundedParts.has(textIn(fact))) prompt.isBeyondBytes = true
}
const takeImage: Take = ({ prompt }, fact) => prompt.addImage(fact)
const takeEarlier: Take = ({ prompt }, { kind }) => {
  if (kind !== 'null') prompt.isBeyondBytes = true
}

/** Chat completions, responses and embeddings (platform.openai.com/docs/api-reference). */
const request: Readonly<Record<string, Take>> = {
  '/model': (of, fact) => {
    of.model = textIn(fact)
  },
  '/max_completion_tokens': takeMost,
  '/max_tokens': takeMost,
  '/max_output_tokens': takeMost,
  '/n': (of, { value }) => {
    of.choices = Math.max(1, quantityOf(value) ?? 1)
  },
  '/background': (of, { value }) => {
    of.isDeferred = value === true
  },
  '/stream': (of, { value }) => {
    of.isStreamed = value === true
  },
  '/stream_options': (of) => {
    of.hasOptions = true
  },
  '/previous_response_id': takeEarlier,
  '/conversation': takeEarlier,
  '/prompt/id': takeEarlier,
  '/messages/*/content/*/type': takePart,
  '/messages/*/content/*/image_url/url': takeImage,
  '/input/*/type': takePart,
  '/input/*/content/*/type': takePart,
  '/input/*/content/*/image_url': takeImage,
  '/input/*/output/*/type': takePart,
  '/input/*/output/*/image_url': takeImage,
  '/tools/*/type': ({ prompt }, fact) => {
    if (!callersTools.has(textIn(fact))) prompt.isHosted = true
  },
  '/web_search_options': ({ prompt }) => {
    prompt.isHosted = true
  },
}

function mostOf({ prompt, meter, choices, mostOutput }: OpenAiFacts, bytes: number): Quantities | undefined {
  const input = prompt.input(bytes, meter)
  // Which of them holds is the supplier's to choose: the largest bounds it.
  const output = mostOutput.length > 0 ? Math.max(...mostOutput) : meter.maxOutput
  return input === undefined || output === undefined ? undefined : tokensOf(input, output * choices * prompt.runs)
}

const takes = Object.values(request)

function readRequest(meter: Meter): RequestReading {
  const prompt = new PromptBound()
  const facts: OpenAiFacts = {
    prompt,
    meter,
    model: '',
    isDeferred: false,
    isStreamed: false,
    hasOptions: false,
    choices: 1,
    mostOutput: [],
  }
  return {
    found: (pattern, fact) => takes[pattern]?.(facts, fact),
    measured: (bytes) => ({
      most: mostOf(facts, bytes),
      dimensions: { model: facts.model },
      isDeferred: facts.isDeferred,
      lacksUsage: facts.isStreamed && !facts.hasOptions,
    }),
  }
}

/** Where an answer says what was used, by the unit's name: of chat and embeddings, and of responses. */
const usage = {
  input_tokens: ['prompt_tokens', 'input_tokens'],
  cache_read_input_tokens: ['prompt_tokens_details/cached_tokens', 'input_tokens_details/cached_tokens'],
  output_tokens: ['completion_tokens', 'output_tokens'],
  reasoning_output_tokens: ['completion_tokens_details/reasoning_tokens', 'output_tokens_details/reasoning_tokens'],
} as const

const units = Object.keys(usage) as (keyof typeof usage)[]
/** By position of the patterns: the unit that each says. */
const unitAt = units.flatMap((unit) => usage[unit].flatMap(() => [unit, unit]))
const usagePatterns = units.flatMap((unit) => usage[unit].flatMap((at) => [`/usage/${at}`, `/response/usage/${at}`]))
/** What a client sees of an answer: a piece of it in each event. */
const textPatterns = [
  '/choices/*/delta/content',
  '/choices/*/delta/reasoning_content',
  '/choices/*/delta/tool_calls/*/function/arguments',
  '/choices/*/message/content',
  '/delta',
]

class OpenAiAnswer implements AnswerReading {
  readonly #said: Quantities = {}
  readonly #seen = { bytes: 0, pieces: 0 }

  found(pattern: number, fact: Fact): void {
    const unit = unitAt[pattern]
    if (unit !== undefined) {
      const quantity = quantityOf(fact.value)
      if (quantity !== undefined) this.#said[unit] = quantity
    } else if (fact.kind === 'text' && fact.size > 0) {
      this.#seen.bytes += fact.size
      this.#seen.pieces += 1
    }
  }

  eventBegins(): void {}

  reported(): Quantities | undefined {
    const { input_tokens: input, output_tokens: output = 0 } = this.#said
    // Embeddings have no output.
    return input === undefined ? undefined : { ...this.#said, ...tokensOf(input, output) }
  }

  counted(bytesIn: number): Quantities {
    return countedTokens(bytesIn, this.#seen)
  }
}

/** OpenAI's API, and what speaks it. */
export const openai: Preset = {
  units: [...units, 'tokens'],
  dimensions: ['model'],
  requestPatterns: Object.keys(request),
  answerPatterns: [...usagePatterns, ...textPatterns],
  readRequest,
  readAnswer: () => new OpenAiAnswer(),
}
