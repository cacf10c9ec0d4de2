import swagger from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import { answersOf, proxyResponses, schemas } from './answers.ts'

const authorizePath = '/v1/authorize'

/**
 * Serves `GET /openapi.json`, made once from the schemas of the routes that are added after this, with what they answer.
 * Answers are described here and not at the routes, where Fastify would hold each to its schema and drop what is not in it.
 */
export async function describeApi(app: FastifyInstance): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Weir ingress',
        version: '1',
        description:
          'The check API and the door for gateways. The proxy is no API of its own; what it answers itself is under components/responses as Proxy429 and so on, what it passes on as ProxyPassed.',
      },
      components: {
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer', description: 'A key, a JWT, or a token with the scope check.' },
          key: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
        },
      },
      security: [{ bearer: [] }, { key: [] }],
    },
    // What is below /v1/authorize is the client's path, and the same door.
    transform: ({ schema, url }) => ({ schema, url: url === `${authorizePath}/` ? authorizePath : url }),
    transformObject: (made) => ('openapiObject' in made ? withAnswers(made.openapiObject) : made.swaggerObject),
  })
  app.get('/openapi.json', { schema: { hide: true } }, async () => app.swagger())
}

function withAnswers<T extends { paths?: object; components?: object }>(document: T): T {
  const paths = Object.entries(document.paths ?? {}).map(([path, operations]: [string, object]) => [
    path,
    Object.fromEntries(
      // QUERY has no place in OpenAPI before 3.2.
      Object.entries(operations)
        .filter(([method]) => method !== 'query')
        .map(([method, operation]: [string, object]) => [method, { ...operation, responses: answersOf[path] ?? {} }]),
    ),
  ])
  const components = { ...document.components, schemas, responses: proxyResponses }
  return { ...document, paths: Object.fromEntries(paths), components }
}
