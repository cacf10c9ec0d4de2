import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger'
import { shown } from '@weir/api/schema.ts'

interface Body {
  readonly content: Readonly<Record<string, { readonly schema?: { readonly type?: unknown } }>>
  required?: boolean
}

/** Says of bodies that may be null that they may be left out: the plugin calls every body required. */
function describeOptionalBodies<T extends { readonly paths?: object }>(document: T): T {
  const paths: readonly Readonly<Record<string, { readonly requestBody?: Body }>>[] = Object.values(
    document.paths ?? {},
  )
  for (const { requestBody } of paths.flatMap((operations) => Object.values(operations))) {
    const types = Object.values(requestBody?.content ?? {}).flatMap(({ schema }) => schema?.type ?? [])
    if (requestBody !== undefined && types.includes('null')) requestBody.required = false
  }
  return document
}

/** How the served OpenAPI is made of the routes; rules that are only described are shown with the others. */
export const description: FastifyDynamicSwaggerOptions = {
  openapi: {
    openapi: '3.1.0',
    info: {
      title: 'Weir console',
      version: '1',
      description: 'Usage, and the admin API of the policy. docs/admin-api.md is its manual.',
    },
    components: { securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
    security: [{ token: [] }],
  },
  transform: ({ schema, url }) => ({ url, schema: shown(schema) as typeof schema }),
  transformObject: (made) =>
    'openapiObject' in made ? describeOptionalBodies(made.openapiObject) : made.swaggerObject,
}
