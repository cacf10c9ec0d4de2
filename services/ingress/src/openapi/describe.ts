import swagger from '@fastify/swagger'
import { type IngressPath, ingressPaths, ingressSchemas, passedAnswer, proxyAnswers } from '@weir/api/ingress.ts'
import { shown } from '@weir/api/schema.ts'
import { serveDescription } from '@weir/runtime/serve-description.ts'
import type { FastifyInstance } from 'fastify'

const authorizePath = '/v1/authorize'

/**
 * Serves `GET /openapi.json`, made once from the routes that are added after this and the contract. Answers are not
 * described at the routes, where Fastify would drop what is not in their schemas.
 */
export async function describeApi(app: FastifyInstance): Promise<void> {
  const known: Readonly<Record<string, IngressPath>> = ingressPaths
  const ownOfProxy = Object.entries(proxyAnswers).map(([status, answer]) => [`Proxy${status}`, answer])
  const responses = { ...Object.fromEntries(ownOfProxy), ProxyPassed: passedAnswer }

  const withAnswers = <T extends { paths?: object; components?: object }>(document: T): T => {
    const paths = Object.entries(document.paths ?? {}).map(([path, operations]: [string, object]) => {
      // QUERY has no place in OpenAPI before 3.2.
      const described = Object.entries(operations).filter(([method]) => method !== 'query')
      const answers = known[path]?.answers
      return [path, Object.fromEntries(described.map(([method, one]) => [method, { ...one, responses: answers }]))]
    })
    const components = { ...document.components, schemas: ingressSchemas, responses }
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
          bearer: { type: 'http', scheme: 'bearer', description: 'A key, a JWT, or a token with the `check` scope.' },
          key: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
        },
      },
      security: [{ bearer: [] }, { key: [] }],
    },
    // A path below /v1/authorize is the client's, and served by the same route.
    transform: ({ schema, url }) => ({
      schema: shown(schema) as typeof schema,
      url: url === `${authorizePath}/` ? authorizePath : url,
    }),
    transformObject: (made) => ('openapiObject' in made ? withAnswers(made.openapiObject) : made.swaggerObject),
  })
  serveDescription(app, () => app.swagger())
}
