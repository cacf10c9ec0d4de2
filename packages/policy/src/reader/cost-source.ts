import type { CostSource } from '../policy.ts'

/** What a cost that is read from the request looks like, for messages. */
export const costSourceRule = 'header:NAME, query:NAME or json:/pointer'

/** Longer pointers name nothing that someone sends to be counted. */
const pointerLengthMax = 256

/** The same as `parseCostSource` reads, but for lengths, as JSON Schema has it. */
export const costPattern =
  "^(header:[\\w!#$%&'*+.^`|~-]{1,64}|query:[\\x21-\\x7e]{1,64}|json:(/([\\x21-.0-}]|~[01])*)+)$"

/** `header:X-Cost`, `query:count`, `json:/domains`; undefined for anything else. Header names lose their case. */
export function parseCostSource(text: string): CostSource | undefined {
  const [, kind, name = ''] = /^(header|query|json):([\x21-\x7e]+)$/.exec(text) ?? []
  if (kind === 'header') {
    return /^[\w!#$%&'*+.^`|~-]{1,64}$/.test(name) ? { kind, name: name.toLowerCase() } : undefined
  }
  if (kind === 'query') return name.length <= 64 ? { kind, name } : undefined
  if (kind !== 'json' || name.length > pointerLengthMax) return undefined
  return /^(?:\/(?:[^/~]|~[01])*)+$/.test(name) ? { kind, pointer: name } : undefined
}
