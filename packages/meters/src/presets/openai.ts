import type { Fact } from '../json-pick.ts'
import { type Meter, presetUnits, quantityOf } from '../meter.ts'
import {
  type AnsweredBy,
  type AnswerReading,
  type BoundsOf,
  boundedMeter,
  countedTokens,
  type Preset,
  PromptBound,
  type Quantities,
  type RequestReading,
  readBound,
  type SeenAnswer,
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
  /** By each name that bounds them: of chats, and of responses. */
  readonly mostOfChat: number[]
  readonly mostOfResponse: number[]
  isChat: boolean
  hasPrediction: boolean
  wrong: string | undefined
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

const takeMost =
  (name: string, into: 'mostOfChat' | 'mostOfResponse'): Take =>
  (of, fact) => {
    const { most, wrong } = readBound(name, fact)
    if (most !== undefined) of[into].push(most)
    of.wrong ??= wrong
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
  '/max_completion_tokens': takeMost('max_completion_tokens', 'mostOfChat'),
  '/max_tokens': takeMost('max_tokens', 'mostOfChat'),
  '/max_output_tokens': takeMost('max_output_tokens', 'mostOfResponse'),
  '/n': (of, fact) => {
    const { most = 1, wrong } = readBound('n', fact)
    of.choices = Math.max(1, most)
    of.wrong ??= wrong
  },
  '/background': (of, { kind, value }) => {
    of.isDeferred = kind !== 'null' && value !== false
  },
  '/messages': (of) => {
    of.isChat = true
  },
  '/prediction': (of, { kind }) => {
    of.hasPrediction = kind !== 'null'
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
  '/messages/*/content/*/image_url': (of, fact) => {
    if (fact.kind === 'text') takeImage(of, fact)
  },
  '/messages/*/audio/id': takeEarlier,
  '/input/*/id': takeEarlier,
  '/input/*/content/*/file_id': takeEarlier,
  '/input/*/output/*/file_id': takeEarlier,
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

function mostOf(of: OpenAiFacts, bytes: number, boundsOf?: BoundsOf): Quantities | undefined {
  const { prompt, choices } = of
  const meter = boundedMeter(of.meter, of.model, boundsOf)
  const input = prompt.input(bytes, meter)
  // Which of a chat's two names holds is the supplier's to choose: the larger bounds it.
  const written = of.isChat ? of.mostOfChat : of.mostOfResponse
  const output = written.length > 0 ? Math.max(...written) : meter.maxOutput
  if (input === undefined || output === undefined) return undefined
  // What is predicted and not taken is output too.
  return tokensOf(input, output * choices * prompt.runs + (of.hasPrediction ? bytes : 0))
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
    mostOfChat: [],
    mostOfResponse: [],
    isChat: false,
    hasPrediction: false,
    wrong: undefined,
  }
  return {
    found: (pattern, fact) => takes[pattern]?.(facts, fact),
    measured: (bytes, boundsOf) => ({
      most: mostOf(facts, bytes, boundsOf),
      wrong: facts.wrong,
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
} as const satisfies Readonly<Record<Exclude<(typeof presetUnits.openai)[number], 'tokens'>, readonly string[]>>

const units = Object.keys(usage) as (keyof typeof usage)[]
/** By position of the patterns: the unit that each says. */
const unitAt = units.flatMap((unit) => usage[unit].flatMap(() => [unit, unit]))
const usagePatterns = units.flatMap((unit) => usage[unit].flatMap((at) => [`/usage/${at}`, `/response/usage/${at}`]))
/** The model and the tier that answered: of chat, and of responses. */
const byPatterns = ['/model', '/response/model', '/service_tier', '/response/service_tier']
/** What a client sees of an answer: a piece of it in each event. */
const textPatterns = [
  '/choices/*/delta/content',
  '/choices/*/delta/reasoning_content',
  '/choices/*/delta/tool_calls/*/function/arguments',
  '/choices/*/delta/reasoning',
  '/choices/*/delta/refusal',
  '/choices/*/delta/function_call/arguments',
  '/choices/*/delta/tool_calls/*/custom/input',
  '/choices/*/message/content',
  '/delta',
]

/** Where the patterns of texts begin. */
const textsFrom = usagePatterns.length + byPatterns.length

class OpenAiAnswer implements AnswerReading {
  readonly #said: Quantities = {}
  readonly seen: SeenAnswer = { bytes: 0, events: 0 }
  readonly by: AnsweredBy = {}

  found(pattern: number, fact: Fact): void {
    const unit = unitAt[pattern]
    if (unit !== undefined) {
      const quantity = quantityOf(fact.value)
      if (quantity !== undefined) this.#said[unit] = quantity
    } else if (pattern < textsFrom) {
      const text = textIn(fact)
      if (text !== '') this.by[pattern < usagePatterns.length + 2 ? 'model' : 'tier'] = text
    } else if (fact.kind === 'text') this.seen.bytes += fact.size
  }

  eventBegins(): void {
    this.seen.events += 1
  }

  reported(): Quantities | undefined {
    const { input_tokens: input, output_tokens: output = 0 } = this.#said
    // Embeddings have no output.
    return input === undefined ? undefined : { ...this.#said, ...tokensOf(input, output) }
  }

  counted(bytesIn: number, bytesOut: number): Quantities {
    return countedTokens(bytesIn, bytesOut, this.seen)
  }
}

/** OpenAI's API, and what speaks it. */
export const openai: Preset = {
  units: presetUnits.openai,
  dimensions: ['model'],
  requestPatterns: Object.keys(request),
  answerPatterns: [...usagePatterns, ...byPatterns, ...textPatterns],
  usageMark: Buffer.from('_tokens"'),
  readRequest,
  readAnswer: () => new OpenAiAnswer(),
}
