import { type NamedScopeKind, namedScopeKinds, partText, type ScopePart } from '@weir/core/limits/limit.ts'
import { bodyScopePattern, isPointer } from '../policy-values.ts'
import * as t from './value-types.ts'

const plainScopes = ['subject', 'key', 'ip', 'route', 'method', 'global'] as const
const scopeTexts = [
  ...plainScopes,
  ...namedScopeKinds.map((kind) => (kind === 'body' ? 'body:/pointer' : `${kind}:NAME`)),
].join(', ')
/** Every plain scope once and two named ones: beyond, a Redis key per request is likelier than a meaning. */
const scopePartsMax = 8
/** Of pointers it is four times that. */
const nameLengthMax = 64
/** Their values are credentials, and Redis keys hold what a limit is counted by, in the clear. */
const secretHeaders = ['authorization', 'proxy-authorization', 'cookie', 'x-api-key']
/** A token of RFC 9110, which names of headers and of cookies are. */
const tokenForm = /^[\w!#$%&'*+.^`|~-]+$/
/** As routes write their parameters. */
const parameterForm = /^[A-Za-z_]\w*$/

/** One thing that a limit counts apart. Header names have no case, so that two spellings of one are the same scope. */
const scope: t.ValueType<ScopePart> = {
  schema: {
    type: 'string',
    anyOf: [
      { enum: plainScopes },
      { pattern: '^(query|attribute|claim):[\\x21-\\x7e]{1,64}$' },
      { pattern: bodyScopePattern },
      { pattern: '^path:[A-Za-z_]\\w{0,63}$' },
      { pattern: "^cookie:[\\w!#$%&'*+.^`|~-]{1,64}$" },
      {
        pattern: `^[Hh][Ee][Aa][Dd][Ee][Rr]:(?!(${secretHeaders.map(inAnyCase).join('|')})$)[\\w!#$%&'*+.^\`|~-]{1,64}$`,
      },
    ],
  },
  read(reader, at) {
    const written = reader.text(at, `one of ${scopeTexts}`, (text) => text)
    if (written === undefined) return undefined
    const text = /^header:/i.test(written) ? written.toLowerCase() : written
    const plain = plainScopes.find((candidate) => candidate === text)
    if (plain !== undefined) return { kind: plain }
    const [, kindText, name] = /^(\w+):([\x21-\x7e]{1,256})$/.exec(text) ?? []
    const kind = namedScopeKinds.find((candidate) => candidate === kindText)
    if (kind === undefined || name === undefined || (kind !== 'body' && name.length > nameLengthMax)) {
      const quoted = JSON.stringify(text.slice(0, 40))
      return reader.problem(at, `must be one of ${scopeTexts}, but is ${quoted}${reader.near(text, plainScopes)}`)
    }
    const why = whyNoName(kind, name)
    return why === undefined ? { kind, name } : reader.problem(at, why)
  },
}

function whyNoName(kind: NamedScopeKind, name: string): string | undefined {
  if (kind === 'body' && !isPointer(name)) return `${name} is not a JSON pointer such as /phone or /user/id`
  if (kind === 'path' && !parameterForm.test(name)) return `${name} cannot be a parameter of a route`
  if (kind === 'cookie' && !tokenForm.test(name)) return `${name} cannot be the name of a cookie`
  if (kind !== 'header') return undefined
  if (!tokenForm.test(name)) return `${name} cannot be the name of a header`
  if (!secretHeaders.includes(name)) return undefined
  const instead = name === 'cookie' ? '`cookie:NAME`, which is hashed' : '`key`'
  return `the header ${name} holds a secret, which must not be part of Redis keys; use ${instead}`
}

/** `[Xx]-[Aa]…`: a pattern of JSON Schema has no flags. */
function inAnyCase(name: string): string {
  return name.replaceAll(/[a-z]/g, (letter) => `[${letter.toUpperCase()}${letter}]`)
}

/** What a limit counts apart: its `by`. */
export const scopes = t.list('a list such as [subject] or [ip, route]', scope, {
  min: 1,
  max: scopePartsMax,
  wrongCount: (count) => `must name 1 to ${scopePartsMax} scopes, but names ${count}`,
  nameOf: partText,
})
