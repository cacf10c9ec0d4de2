import { Ajv2020 } from 'ajv/dist/2020.js'

/** What is held against the description of an API. */
export interface Answer {
  readonly statusCode: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: string
}

interface Described {
  readonly headers?: Readonly<
    Record<string, { readonly required?: boolean; readonly schema: { readonly type?: string } }>
  >
  readonly content?: Readonly<Record<string, { readonly schema?: object }>>
}

/** The part of an OpenAPI 3.1 document that answers are checked against. */
export interface OpenApiDocument {
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, { readonly responses: Readonly<Record<string, Described>> }>>>
  >
  readonly components: { readonly schemas: object; readonly responses: Readonly<Record<string, Described>> }
}

/** What of an answer is not as described; empty if all is. */
export type AnswerCheck = (answer: Answer) => readonly string[]

/**
 * Holds answers to the served document: those of a route by its method and path, the proxy's own by `proxy`, those of
 * its upstreams by `passed`, and those to what is no route by `problem`. Status, media type, body, and every header
 * that is described.
 */
export function createAnswerChecks(document: OpenApiDocument): {
  route(method: string, path: string): AnswerCheck
  readonly proxy: AnswerCheck
  readonly passed: AnswerCheck
  readonly problem: AnswerCheck
} {
  // Numbers in headers are text: read as numbers, as clients do.
  const ajv = new Ajv2020({ strict: false, allErrors: true, coerceTypes: false })
  const components = { $id: 'components', components: document.components }
  ajv.addSchema(components)
  /** As many as the document has schemas, once per status. */
  const compiled = new Map<string, ReturnType<typeof ajv.compile>>()
  const errorsIn = (where: string, schema: object, value: unknown): string[] => {
    const text = JSON.stringify(schema).replaceAll('"#/components/', '"components#/components/')
    const isRight = compiled.get(text) ?? ajv.compile(JSON.parse(text))
    compiled.set(text, isRight)
    return isRight(value) ? [] : [`${where}: ${ajv.errorsText(isRight.errors)}`]
  }
  const check = ({ statusCode, headers, body }: Answer, described: Described | undefined): string[] => {
    if (described === undefined) return [`status ${statusCode} is not described`]
    const found: string[] = []
    for (const [name, { required, schema }] of Object.entries(described.headers ?? {})) {
      const value = headers[name.toLowerCase()]
      if (value === undefined && required) found.push(`${name} is missing`)
      if (value === undefined) continue
      found.push(...errorsIn(name, schema, schema.type === 'integer' ? Number(value) : `${value}`))
    }
    if (body === '') return found
    const type = `${headers['content-type']}`.split(';')[0] ?? ''
    const media = described.content?.[type] ?? described.content?.['*/*']
    if (media === undefined) return [...found, `${type} is not described for status ${statusCode}`]
    if (media.schema === undefined) return found
    return [...found, ...errorsIn('body', ofStatus(media.schema, statusCode), JSON.parse(body))]
  }
  return {
    route: (method, path) => (answer) =>
      check(answer, document.paths[path]?.[method.toLowerCase()]?.responses[answer.statusCode]),
    proxy: (answer) => check(answer, document.components.responses[`Proxy${answer.statusCode}`]),
    passed: (answer) => check(answer, document.components.responses.ProxyPassed),
    problem: (answer) => check(answer, anyProblem),
  }
}

const anyProblem: Described = {
  headers: { 'Cache-Control': { required: true, schema: {} } },
  content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
}

/** The status that a problem names is the answer's own. */
const ofStatus = (schema: object, status: number) =>
  status < 400 ? schema : { allOf: [schema, { type: 'object', properties: { status: { const: status } } }] }
