import cors from '@fastify/cors'
import type { Variable } from '@weir/runtime/read-config.ts'
import type { FastifyInstance } from 'fastify'

/** Pages of customers' portals that a console knows; each request is compared with all. */
const originsMax = 100
/** A browser asks again after this, and so learns of a change. */
const maxAgeSeconds = 600

/** The origins of pages that may read the API in a browser. */
export const portalOrigins: Variable<readonly string[]> = {
  name: 'WEIR_PORTAL_ORIGINS',
  about: 'origins of web pages that may read usage, separated by commas: https://app.example.com',
  fallback: '',
  parse: (value) => {
    const origins = value.split(',').flatMap((one) => one.trim() || [])
    const isRight = origins.length <= originsMax && origins.every((one) => URL.parse(one)?.origin === one)
    const problem = `must be at most ${originsMax} origins such as https://app.example.com, separated by commas`
    return isRight ? { value: origins } : { problem }
  },
}

/** Lets these pages read with a token that they send themselves: cookies of the console's own page count for none. */
export function admitPortalPages(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return
  app.register(cors, {
    origin: [...origins],
    methods: ['GET', 'HEAD'],
    allowedHeaders: ['Authorization', 'X-API-Key'],
    exposedHeaders: ['Retry-After', 'ETag'],
    maxAge: maxAgeSeconds,
  })
}
