import { costMax } from '@weir/core/limits/limit-store.ts'

/** Where a quantity is read before the answer. */
export type BeforeSource =
  | { readonly kind: 'header' | 'query'; readonly name: string }
  /** JSON Pointer (RFC 6901) to a whole number, or to a list, whose length counts. */
  | { readonly kind: 'json'; readonly pointer: string }

/** Where a quantity is read after it, once, by the last that says it. */
export type AfterSource =
  | { readonly kind: 'header' | 'trailer'; readonly name: string }
  | { readonly kind: 'json'; readonly pointer: string }
  /** Of any event, or of those of one name. */
  | { readonly kind: 'sse'; readonly event: string | undefined; readonly pointer: string }
  | { readonly kind: 'bytes_in' | 'bytes_out' | 'duration' }

/** A unit with where its quantity comes from. */
export interface MeteredUnit {
  /** Its most: what is held. Undefined where `otherwise` always is. */
  readonly before: BeforeSource | undefined
  /** Where the request does not say it. */
  readonly otherwise: number
  /** Undefined where the answer changes nothing. */
  readonly after: AfterSource | undefined
}

/** A label of usage, of which a caller can invent no more than `max` values. */
export interface Dimension {
  readonly from: BeforeSource
  /** Others than these are `_other`; undefined for any. */
  readonly values: readonly string[] | undefined
  /** Distinct values a day and process; all further ones are `_other`. */
  readonly max: number
}

/** Suppliers whose requests and answers Weir can read by itself. */
export const presetNames = ['openai', 'anthropic', 'mcp'] as const
/** One of `presetNames`. */
export type PresetName = (typeof presetNames)[number]

/** The units that the responses of each preset's API report. */
export const presetUnits = {
  openai: ['input_tokens', 'cache_read_input_tokens', 'output_tokens', 'reasoning_output_tokens', 'tokens'],
  anthropic: [
    'input_tokens',
    'output_tokens',
    'tokens',
    'cache_read_input_tokens',
    'cache_creation_input_tokens',
    'cache_creation_1h_input_tokens',
    'web_search_requests',
  ],
  mcp: ['calls'],
} as const satisfies Readonly<Record<PresetName, readonly string[]>>

/** What an exchange is measured by. */
export interface Meter {
  readonly name: string
  readonly preset: PresetName | undefined
  /** Besides the preset's. */
  readonly units: ReadonlyMap<string, MeteredUnit>
  /** Besides the preset's. */
  readonly dimensions: ReadonlyMap<string, Dimension>
  /** Most tokens of an answer, where the request does not bound it; undefined: such a request cannot be held. */
  readonly maxOutput: number | undefined
  /** Most tokens that the model reads, where a request's bytes do not bound them; undefined likewise. */
  readonly context: number | undefined
  /** Bytes of a prompt a token: 1 is a proof, more a guess. */
  readonly promptRatio: number
  /** Asks for the usage of a streamed chat, and keeps the event that says it from a client that did not ask. */
  readonly includeUsage: boolean
  /** Reads an answer to its end whose client has gone. */
  readonly drain: boolean
  /** What an answer without usage counts as: what was seen of it, or all that was held. */
  readonly unsaid: 'count' | 'hold'
}

/** What a meter is without any setting. */
export const meterDefaults: Omit<Meter, 'name'> = {
  preset: undefined,
  units: new Map(),
  dimensions: new Map(),
  maxOutput: undefined,
  context: undefined,
  promptRatio: 1,
  includeUsage: false,
  drain: false,
  unsaid: 'count',
}

/** By name, the meters that need no setting. */
export const presetMeters: ReadonlyMap<string, Meter> = new Map(
  presetNames.map((preset) => [preset, { ...meterDefaults, name: preset, preset }]),
)

/** More of one unit is a mistake of who says it: as of costs. */
export const quantityMax = costMax

/** The quantity that somebody said; undefined for none, and for what none can be. */
export const quantityOf = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= quantityMax ? value : undefined

/** The same of a header or a parameter. */
export const quantityInText = (text: unknown): number | undefined =>
  typeof text === 'string' && /^\d{1,16}$/.test(text) ? quantityOf(Number(text)) : undefined
