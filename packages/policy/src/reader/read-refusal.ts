import { rateLimitDialects } from '@weir/core/limits/rate-limit-headers.ts'
import type { Refusal } from '../policy.ts'
import { fillTemplate, namesInTemplate, refusalValueNames } from '../template.ts'
import type { PolicyReader, SourcePosition } from './policy-reader.ts'
import * as t from './value-types.ts'

/** A refusal is written again and again while a client does not wait. */
const bodyLengthMax = 2_048
const defaultType = 'application/json'
const typeForm = /^[\w!#$&^.+-]{1,64}\/[\w!#$&^.+-]{1,64}(?:; ?charset=(?:utf|UTF)-8)?$/
const typeRule = 'a media type such as application/json or text/html; charset=utf-8'

const body = t.checked(
  t.text(`a text of 1 to ${bodyLengthMax} characters`, (text) =>
    text.length > 0 && text.length <= bodyLengthMax ? text : undefined,
  ),
  (template, reader, at): string | undefined => {
    const wrong = namesInTemplate(template).find((name) => !refusalValueNames.some((known) => known === name))
    if (wrong === undefined) return template
    const near = reader.near(wrong, refusalValueNames)
    return reader.problem(at, `names {{${wrong.slice(0, 40)}}}, and there are ${listed}${near}`)
  },
  { minLength: 1, maxLength: bodyLengthMax },
)
const listed = refusalValueNames.map((name) => `{{${name}}}`).join(', ')

const fields = t.object('a refusal', {
  headers: t.optional(
    "The rate-limit headers of its refusals; without, those of the process's dialect.",
    t.oneOf([...rateLimitDialects, 'none']),
  ),
  body: t.optional(`The body of its refusals by limits, with ${listed}; without, a problem by RFC 9457.`, body),
  contentType: t.optional(`The media type of that body. Default: ${defaultType}.`, t.matching(typeRule, typeForm)),
})

/** How a route answers the requests that limits refuse. */
export const refusal: t.ValueType<Refusal> = {
  schema: fields.schema,
  read(reader, at) {
    const values = fields.read(reader, at)
    if (values === undefined) return undefined
    const { headers: dialect, body: text, contentType = defaultType } = values
    if (text !== undefined && isJson(contentType) && !isJsonText(text)) return notJson(reader, at)
    return {
      contentType,
      ...(dialect === undefined ? {} : { dialect }),
      ...(text === undefined ? {} : { body: text }),
    }
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
  reader.problem(at, 'has a `body` that is no JSON with its values in it; say `contentType` if it is none')
