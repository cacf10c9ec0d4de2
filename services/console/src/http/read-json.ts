import type { FastifyInstance } from 'fastify'

/**
 * A body with one entity: a list of a thousand addresses takes a sixth of it. Policy files have a bound of their own.
 */
export const bodyBytesMax = 256 * 1024
/** No part of a policy is deeper than a handful; what walks a body calls itself once for each level. */
const depthMax = 32

/** Whether arrays and objects of a text of JSON are nested deeper than that. */
function isTooDeep(text: string): boolean {
  let [depth, isInString] = [0, false]
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]
    if (isInString && character === '\\') at += 1
    else if (character === '"') isInString = !isInString
    else if (isInString) continue
    else if (character === '{' || character === '[') depth += 1
    else if (character === '}' || character === ']') depth -= 1
    if (depth > depthMax) return true
  }
  return false
}

/**
 * Parses JSON bodies as Fastify does, and rejects with 400 those that are nested too deep. Clients name a type by habit
 * and send nothing: a route that needs a body says so.
 */
export function readJson(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  app.addContentTypeParser<string>('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body === '') return done(null, undefined)
    if (!isTooDeep(body)) return parse(request, body, done)
    const error = new Error(`The body is nested more than ${depthMax} levels deep, which is not supported.`)
    done(Object.assign(error, { statusCode: 400 }), undefined)
  })
  app.addContentTypeParser('*', ({ headers }, _body, done) => {
    const isEmpty = headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0
    const error = new Error(`The media type ${headers['content-type']} is not accepted: send application/json.`)
    done(isEmpty ? null : Object.assign(error, { statusCode: 415 }), undefined)
  })
}
