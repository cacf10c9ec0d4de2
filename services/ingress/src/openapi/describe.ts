import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import swagger from '@fastify/swagger'
import { serveDescription } from '@weir/runtime/serve-description.ts'
import type { FastifyInstance } from 'fastify'
import { parse } from 'yaml'

const authorizePath = '/v1/authorize'

/** One answer as answers.yaml has it. */
interface Answer {
  readonly description: string
  /** Names a schema; left out for a problem, null for an answer without a body. */
  readonly schema?: string | null
  /** Names groups of headers. */
  readonly headers?: readonly string[]
}

type Answers = Readonly<Record<string, Answer>>

interface AnswersFile {
  readonly headers: Readonly<Record<string, object>>
  readonly schemas: Readonly<Record<string, object>>
  readonly answers: Readonly<Record<string, Answers>>
  readonly proxy: Answers
}

/**
 * Serves `GET /openapi.json`, made once from the schemas of the routes that are added after this, with their answers
 * out of answers.yaml. Answers are not described at the routes, where Fastify would drop what is not in their schemas.
 */
export async function describeApi(app: FastifyInstance): Promise<void> {
  const file: AnswersFile = parse(readFileSync(join(import.meta.dirname, 'answers.yaml'), 'utf8'), { merge: true })
  const responsesOf = (answers: Answers) =>
    Object.fromEntries(Object.entries(answers).map(([status, answer]) => [status, responseOf(answer, file)]))
  const ownOfProxy = Object.entries(responsesOf(file.proxy)).map(([status, answer]) => [`Proxy${status}`, answer])
  const passed = {
    description: "The upstream's answer, with the headers of a decision instead of its own of these names.",
    headers: file.headers.decision,
    content: { '*/*': {} },
  }
  const responses = { ...Object.fromEntries(ownOfProxy), ProxyPassed: passed }

  const withAnswers = <T extends { paths?: object; components?: object }>(document: T): T => {
    const paths = Object.entries(document.paths ?? {}).map(([path, operations]: [string, object]) => {
      // QUERY has no place in OpenAPI before 3.2.
      const described = Object.entries(operations).filter(([method]) => method !== 'query')
      const answers = responsesOf(file.answers[path] ?? {})
      return [path, Object.fromEntries(described.map(([method, one]) => [method, { ...one, responses: answers }]))]
    })
    const components = { ...document.components, schemas: file.schemas, responses }
    return { ...document, paths: Object.fromEntries(paths), components }
  }

  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Weir ingress',
        version: '1',
        description:
          'The check API and the endpoint for gateways. The proxy is no API of its own; what it answers itself is under components/responses as Proxy429 and so on, what it passes on as ProxyPassed.',
      },
      components: {
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer', description: 'A key, a JWT, or a token with the scope check.' },
          key: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
        },
      },
      security: [{ bearer: [] }, { key: [] }],
    },
    // A path below /v1/authorize is the client's, and served by the same route.
    transform: ({ schema, url }) => ({ schema, url: url === `${authorizePath}/` ? authorizePath : url }),
    transformObject: (made) => ('openapiObject' in made ? withAnswers(made.openapiObject) : made.swaggerObject),
  })
  serveDescription(app, () => app.swagger())
}

function responseOf({ description, schema = 'Problem', headers = [] }: Answer, file: AnswersFile): object {
  const type = schema === 'Problem' ? 'application/problem+json' : 'application/json'
  return {
    description,
    headers: Object.assign({}, ...['noStore', ...headers].map((name) => file.headers[name])),
    ...(schema === null ? {} : { content: { [type]: { schema: { $ref: `#/components/schemas/${schema}` } } } }),
  }
}
