import { definedFields } from '@weir/core/defined-fields.ts'
import { rateLimitDialects } from '@weir/core/limits/rate-limit-headers.ts'
import { type Refusal, type Refusals, refusalForms, refusalKinds } from '@weir/core/limits/refusal.ts'
import { fillTemplate, namesInTemplate, refusalValueNames } from '../template.ts'
import type { Fields, PolicyReader, SourcePosition } from './policy-reader.ts'
import * as t from './value-types.ts'

/** A refusal is written again and again while a client does not wait. */
const bodyLengthMax = 2_048
const defaultType = 'application/json'
const typeForm = /^[\w!#$&^.+-]{1,64}\/[\w!#$&^.+-]{1,64}(?:; ?charset=(?:utf|UTF)-8)?$/
const [codeRule, codeForm] = ['1 to 64 letters, digits, _, . or -', /^[\w.-]{1,64}$/] as const
const [messageRule, messageForm] = ['1 to 500 characters on one line', /^[^\p{Cc}]{1,500}$/u] as const
const typeRule = 'a media type such as application/json or text/html; charset=utf-8'

const body = t.checked(
  t.text(`a text of 1 to ${bodyLengthMax} characters`, (text) =>
    text.length > 0 && text.length <= bodyLengthMax ? text : undefined,
  ),
  (template, reader, at): string | undefined => {
    const wrong = namesInTemplate(template).find((name) => !refusalValueNames.some((known) => known === name))
    if (wrong === undefined) return template
    const near = reader.near(wrong, refusalValueNames)
    return reader.problem(at, `names {{${wrong.slice(0, 40)}}}, but the available values are ${listed}${near}`)
  },
  { minLength: 1, maxLength: bodyLengthMax },
)
const listed = refusalValueNames.map((name) => `{{${name}}}`).join(', ')

/** More is a page's business; and a refusal is written again and again. */
const headersMax = 16
const headerName = /^[\w!#$%&'*+.^`|~-]{1,64}$/
const headerValue = /^[\x21-\x7e](?:[\x20-\x7e]{0,510}[\x21-\x7e])?$/
/** What Weir sets or removes, and what is about the connection or the caller's session. */
const notToSet =
  /^(?:(?:x-)?(?:rate-?limit|weir)(?:-.*)?|retry-after|www-authenticate|cache-control|location|date|content-(?:type|length|encoding|range)|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|set-cookie2?|x-limit-status|x-should-retry|x-(?:envoy|accel)-.*)$/

/** Names of headers and their values; names without their case. */
const setHeaders: t.ValueType<Readonly<Record<string, string>>> = {
  schema: {
    type: 'object',
    maxProperties: headersMax,
    propertyNames: { pattern: headerName.source },
    additionalProperties: { type: 'string', pattern: headerValue.source },
  },
  read(reader, at) {
    const fields = reader.map(at, 'a map of headers such as { X-Error-Code: too_many_requests }')
    if (fields === undefined) return undefined
    if (fields.size > headersMax) return reader.problem(at, `has ${fields.size} headers; the maximum is ${headersMax}`)
    const found = new Map<string, string>()
    for (const [written, field] of fields) {
      const name = written.toLowerCase()
      const isText = (text: string) => (headerValue.test(text) ? text : undefined)
      const value = reader.text(field, 'a text of 1 to 512 printable ASCII characters', isText)
      if (!headerName.test(name)) reader.problemAtKey(field, 'is not a header name')
      else if (notToSet.test(name))
        reader.problemAtKey(field, 'is set by Weir, or belongs to the connection or a session')
      else if (found.has(name)) reader.problemAtKey(field, 'is set twice: header names are case-insensitive')
      if (value !== undefined) found.set(name, value)
    }
    return Object.fromEntries(found)
  },
}

const fields = t.object('a refusal', {
  headers: t.optional(
    "Dialect of the rate-limit headers. Default: the process's dialect.",
    t.oneOf([...rateLimitDialects, 'none']),
  ),
  status: t.optional("The status, 400 to 599. Default: Weir's own.", t.integer(400, 599)),
  setHeaders: t.optional('Additional headers, by name.', setHeaders),
  body: t.optional(`Response body. May contain ${listed}. Default: an RFC 9457 problem.`, body),
  contentType: t.optional(`Media type of the body. Default: ${defaultType}.`, t.matching(typeRule, typeForm)),
  as: t.optional("Form of the body, through the proxy. Default: that of the route's meter.", t.oneOf(refusalForms)),
  retry: t.optional(
    'Whether client programs retry. Default: `after` for waits of up to a minute.',
    t.oneOf(['after', 'never']),
  ),
  code: t.optional("The error's code. Default: the supplier's.", t.matching(codeRule, codeForm)),
  message: t.optional("The error's message. Default: Weir's.", t.matching(messageRule, messageForm)),
})

const wordKeys = ['as', 'retry', 'code', 'message'] as const

/** How requests are answered that are refused. */
const refusal: t.ValueType<Refusal> = {
  schema: fields.schema,
  read(reader, at) {
    const values = fields.read(reader, at)
    if (values === undefined) return undefined
    const { headers: dialect, body: text, contentType = defaultType, status, setHeaders: set, ...words } = values
    const word = wordKeys.find((key) => words[key] !== undefined)
    if (text !== undefined && word !== undefined) {
      return reader.problem(at, `has \`body\` and \`${word}\`, but \`body\` is the whole response; remove one of them`)
    }
    if (text !== undefined && isJson(contentType) && !isJsonText(text)) return notJson(reader, at)
    return { contentType, ...definedFields({ dialect, status, setHeaders: set, body: text, ...words }) }
  },
}

const isJson = (type: string) => /[/+]json(?:;|$)/i.test(type)

function isJsonText(template: string): boolean {
  try {
    JSON.parse(fillTemplate(template, { limit: 'a', reason: 'limit', retry_after: '1', decision: 'a' }))
    return true
  } catch {
    return false
  }
}

const notJson = (reader: PolicyReader, at: SourcePosition): undefined =>
  reader.problem(at, 'has a `body` that is not JSON once its values are filled in; for other types, set `contentType`')

const kindsRule = { unauthorized: '401', cost: '403', limit: '429', unavailable: '503' }
const byKind = Object.fromEntries(
  refusalKinds.map((kind) => [kind, t.optional(`Replaces Weir's ${kindsRule[kind]}.`, refusal)]),
)
const kinds = t.object('refusals', byKind)

/** The section `refusals`. */
export const refusalEntries = { schema: t.emptyOr(kinds.schema) }

/** Reads the section `refusals`: how requests are answered that no route and no limit has a refusal for. */
export const readRefusals = (reader: PolicyReader, at: SourcePosition): ReadonlyMap<string, Refusal | undefined> =>
  new Map(Object.entries<Refusal | undefined>(kinds.find(reader, at)?.values ?? {}))

/** `refusal`, which is that of limits, and `refusals` by kind: keys of a route and of a limit. */
export const refusalMembers = {
  refusal: t.optional('Response to requests that a limit refuses (429). Short for `refusals.limit`.', refusal),
  refusals: t.optional('Responses to refused requests, by reason.', kinds),
}

/** The refusals of a route or of a limit, as a part of it. */
export function refusalsOf(
  reader: PolicyReader,
  fields: Fields,
  { refusal: limit, refusals }: { readonly refusal?: Refusal | undefined; readonly refusals?: Refusals | undefined },
): { readonly refusals?: Refusals } {
  if (limit !== undefined && refusals?.limit !== undefined) {
    reader.refuseKey(fields, 'refusal', 'conflicts with `refusals.limit`, which means the same')
  }
  const all = { ...refusals, ...definedFields({ limit }) }
  return Object.keys(all).length === 0 ? {} : { refusals: all }
}
