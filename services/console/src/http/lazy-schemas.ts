import { enforced } from '@weir/api/schema.ts'
import fastJsonStringify, { type Schema } from 'fast-json-stringify'
import type { FastifyInstance, FastifySchemaCompiler } from 'fastify'

type Validate = ReturnType<FastifySchemaCompiler<unknown>>

/**
 * Compiles the schema of a route when it is asked for the first time: a console needs few of its hundreds, and all of
 * them take a third of its start.
 */
export function compileLazily(app: FastifyInstance, compile: FastifySchemaCompiler<unknown>): void {
  app.setValidatorCompiler((route) => {
    let made: Validate | undefined
    const validate: Validate = (data) => {
      made ??= compile({ ...route, schema: enforced(route.schema) }) as Validate
      const answer = made(data)
      validate.errors = made.errors ?? null
      return answer
    }
    return validate
  })
  app.setSerializerCompiler(({ schema }) => {
    let made: ((data: unknown) => string) | undefined
    return (data) => {
      made ??= fastJsonStringify(schema as Schema)
      return made(data)
    }
  })
}
