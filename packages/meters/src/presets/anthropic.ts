import type { Fact } from '../json-pick.ts'
import { type Meter, presetUnits, quantityOf } from '../meter.ts'
import {
  type AnsweredBy,
  type AnswerReading,
  type Bounds,
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
interface AnthropicFacts {
  readonly prompt: PromptBound
  model: string
  mostOutput: number | undefined
  /** Searches that it allows, of how many tools that search. */
  uses: number
  searchTools: number
  wrong: string | undefined
}

type Take = (of: AnthropicFacts, fact: Fact) => void

/** Parts whose tokens their own bytes bound, and images, which have a source. All others are taken for documents. */
const boundedParts: ReadonlySet<string> = new Set([
  'text',
  'image',
  'tool_use',
  'tool_result',
  'thinking',
  'redacted_thinking',
])
/** Tools that the caller runs. */
const callersTool = /^(?:custom|bash_\d+|text_editor_\d+|computer_\d+|memory_\d+)$/
/** Searches of a request that does not bound them. */
const searchesMax = 10

const takePart: Take = ({ prompt }, fact) => {
  const type = textIn(fact)
  if (type === 'image') prompt.images += 1
  if (!boundedParts.has(type)) prompt.isBeyondBytes = true
}
const takeSource: Take = ({ prompt }, fact) => {
  if (textIn(fact) !== 'base64') prompt.isBeyondBytes = true
}
const takeElsewhere: Take = ({ prompt }, { kind }) => {
  if (kind !== 'null') prompt.isBeyondBytes = true
}

/** Messages (docs.anthropic.com/en/api/messages). */
const request: Readonly<Record<string, Take>> = {
  '/model': (of, fact) => {
    of.model = textIn(fact)
  },
  '/max_tokens': (of, fact) => {
    const { most, wrong } = readBound('max_tokens', fact)
    of.mostOutput = most
    of.wrong ??= wrong
  },
  '/container': takeElsewhere,
  '/mcp_servers': (of, fact) => {
    takeElsewhere(of, fact)
    of.prompt.isHosted ||= fact.kind !== 'null'
  },
  '/context_management': takeElsewhere,
  '/messages/*/content/*/type': takePart,
  '/messages/*/content/*/source/type': takeSource,
  '/messages/*/content/*/content/*/type': takePart,
  '/messages/*/content/*/content/*/source/type': takeSource,
  '/system/*/type': takePart,
  '/tools/*/type': (of, fact) => {
    const type = textIn(fact)
    if (type.startsWith('web_search')) of.searchTools += 1
    if (!callersTool.test(type)) of.prompt.isHosted = true
  },
  '/tools/*/max_uses': (of, fact) => {
    const { most = searchesMax, wrong } = readBound('max_uses', fact)
    of.uses += most
    of.wrong ??= wrong
  },
}

function mostOf({ prompt, ...facts }: AnthropicFacts, meter: Bounds, bytes: number): Quantities | undefined {
  const input = prompt.input(bytes, meter)
  const output = facts.mostOutput ?? meter.maxOutput
  if (input === undefined || output === undefined) return undefined
  const tokens = tokensOf(input, output * prompt.runs)
  return facts.searchTools === 0
    ? tokens
    : { ...tokens, web_search_requests: facts.uses || searchesMax * facts.searchTools }
}

const takes = Object.values(request)

function readRequest(meter: Meter): RequestReading {
  const prompt = new PromptBound()
  const facts: AnthropicFacts = { prompt, model: '', mostOutput: undefined, uses: 0, searchTools: 0, wrong: undefined }
  return {
    found: (pattern, fact) => takes[pattern]?.(facts, fact),
    measured: (bytes, boundsOf) => ({
      most: mostOf(facts, boundedMeter(meter, facts.model, boundsOf), bytes),
      dimensions: { model: facts.model },
      isDeferred: false,
      wrong: facts.wrong,
    }),
  }
}

/** Members of a usage, which is cumulative: each is that of the last event that has it. */
const members = [
  'input_tokens',
  'cache_read_input_tokens',
  'cache_creation_input_tokens',
  'cache_creation/ephemeral_1h_input_tokens',
  'output_tokens',
  'server_tool_use/web_search_requests',
] as const
type Member = (typeof members)[number]

const places = ['/usage', '/message/usage', '/usage/iterations/*'] as const
const usagePatterns = places.flatMap((place) => members.map((member) => `${place}/${member}`))
/** Where the patterns of runs within one answer begin. */
const iterationsFrom = 2 * members.length
/** The model and the tier that answered, each in the answer or in the message of a stream. */
const byPatterns = ['/model', '/message/model', '/usage/service_tier', '/message/usage/service_tier']
const textPatterns = ['/delta/text', '/delta/thinking', '/delta/partial_json', '/content/*/text', '/content/*/thinking']

/** Where the patterns of texts begin. */
const textsFrom = usagePatterns.length + byPatterns.length

class AnthropicAnswer implements AnswerReading {
  readonly #said: Partial<Record<Member, number>> = {}
  /** Sums of the runs that compaction adds, which the usage above them leaves out. */
  #runs: Partial<Record<Member, number>> = {}
  #isNewEvent = true
  /** Whether it came so far that its usage is said: what a stream begins with says a few tokens. */
  #isSaid = false
  readonly seen: SeenAnswer = { bytes: 0, events: 0 }
  readonly by: AnsweredBy = {}

  found(pattern: number, fact: Fact): void {
    const member = members[pattern % members.length]
    if (pattern < usagePatterns.length && member !== undefined) {
      const quantity = quantityOf(fact.value)
      if (quantity === undefined) return
      if (pattern < iterationsFrom) this.#said[member] = quantity
      else this.#addRun(member, quantity)
      if (pattern < members.length && member === 'output_tokens') this.#isSaid = true
    } else if (pattern < textsFrom) {
      const text = textIn(fact)
      if (text !== '') this.by[pattern < usagePatterns.length + 2 ? 'model' : 'tier'] = text
    } else if (fact.kind === 'text') this.seen.bytes += fact.size
  }

  /** Each event that lists the runs lists all of them. */
  #addRun(member: Member, quantity: number): void {
    if (this.#isNewEvent) this.#runs = {}
    this.#isNewEvent = false
    this.#runs[member] = (this.#runs[member] ?? 0) + quantity
  }

  eventBegins(): void {
    this.#isNewEvent = true
    this.seen.events += 1
  }

  reported(): Quantities | undefined {
    return this.#isSaid ? this.#quantities() : undefined
  }

  #quantities(): Quantities {
    const said = { ...this.#said, ...this.#runs }
    const { input_tokens: fresh = 0, cache_read_input_tokens: read = 0, cache_creation_input_tokens: made = 0 } = said
    const hour = said['cache_creation/ephemeral_1h_input_tokens']
    const searches = said['server_tool_use/web_search_requests']
    return {
      ...tokensOf(fresh + read + made, said.output_tokens ?? 0),
      cache_read_input_tokens: read,
      cache_creation_input_tokens: made,
      ...(hour !== undefined && { cache_creation_1h_input_tokens: hour }),
      ...(searches !== undefined && { web_search_requests: searches }),
    }
  }

  counted(bytesIn: number, bytesOut: number): Quantities {
    const { input_tokens: input = 0, output_tokens: output = 0 } = countedTokens(bytesIn, bytesOut, this.seen)
    const said = this.#said.input_tokens === undefined ? undefined : this.#quantities()
    return { ...said, ...tokensOf(said?.input_tokens ?? input, Math.max(output, said?.output_tokens ?? 0)) }
  }
}

/** Anthropic's Messages API, and what speaks it. */
export const anthropic: Preset = {
  units: presetUnits.anthropic,
  dimensions: ['model'],
  requestPatterns: Object.keys(request),
  answerPatterns: [...usagePatterns, ...byPatterns, ...textPatterns],
  usageMark: Buffer.from('_tokens"'),
  readRequest,
  readAnswer: () => new AnthropicAnswer(),
}
