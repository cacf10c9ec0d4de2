import { isOfOneSubject, type ScopePart, type Span } from '@weir/core/limits/limit.ts'
import { notBuilt } from './not-built.ts'
import type { Field, Place, PolicyReader } from './policy-reader.ts'

const plainScopes = ['subject', 'key', 'ip', 'route', 'method', 'global'] as const
const namedScopes = ['header', 'query', 'attribute'] as const
const scopeTexts = [...plainScopes, ...namedScopes.map((kind) => `${kind}:NAME`)]
/** Every plain scope once and two named ones: beyond, a Redis key per request is likelier than a meaning. */
const scopePartsMax = 8
/** Their values are credentials, and what a limit is counted by stands in Redis's keys for everyone to read. */
const secretHeaders = ['authorization', 'proxy-authorization', 'cookie', 'x-api-key']

/** What a limit counts apart: its `by`. */
export function readScope(
  reader: PolicyReader,
  field: Field,
  span: Span | undefined,
): readonly ScopePart[] | undefined {
  const items = reader.list(field, 'a list such as [subject] or [ip, route]')
  if (items === undefined) return undefined
  if (items.length === 0 || items.length > scopePartsMax) {
    return reader.problem(field, `must name 1 to ${scopePartsMax} scopes, but names ${items.length}`)
  }
  const parts = new Map<string, ScopePart | undefined>()
  for (const item of items) {
    const text = reader.text(item, `one of ${scopeTexts.join(', ')}`, sameText)
    if (text === undefined) parts.set('', undefined)
    else if (parts.has(text)) reader.problem(item, `${text} is named twice`)
    else parts.set(text, readPart(reader, item, text))
  }
  const scope = [...parts.values()].filter((part) => part !== undefined)
  if (span?.kind === 'period' && !isOfOneSubject(scope)) {
    return reader.problem(
      field,
      notBuilt(
        'a calendar period over several subjects (whose time zone would it follow?)',
        'periods with subject or key in `by`',
      ),
    )
  }
  return scope.length === items.length ? scope : undefined
}

/** Header names have no case, so that two spellings of one are the same scope. */
const sameText = (text: string) => (/^header:/i.test(text) ? text.toLowerCase() : text)

function readPart(reader: PolicyReader, place: Place, text: string): ScopePart | undefined {
  const plain = plainScopes.find((candidate) => candidate === text)
  if (plain !== undefined) return { kind: plain }
  const [, kindText, name] = /^(header|query|attribute):([\x21-\x7e]{1,64})$/.exec(text) ?? []
  const kind = namedScopes.find((candidate) => candidate === kindText)
  if (kind === undefined || name === undefined) {
    const quoted = JSON.stringify(text.slice(0, 40))
    return reader.problem(
      place,
      `must be one of ${scopeTexts.join(', ')}, but is ${quoted}${reader.near(text, plainScopes)}`,
    )
  }
  if (kind !== 'header') return { kind, name }
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) return reader.problem(place, `${name} cannot be the name of a header`)
  if (secretHeaders.includes(name)) {
    return reader.problem(place, `the header ${name} holds a secret, which must not stand in Redis keys; take \`key\``)
  }
  return { kind, name }
}
