import { parseArgs } from 'node:util'
import fastify, { type FastifyInstance } from 'fastify'

const limit = (name: string) => ({ name, size: 1_000_000_000, used: 12_345, remaining: 999_987_655, reset_ms: 34_567 })

/** As long as what the check API answers for two limits, so that all servers write equally much. */
export const answer = {
  id: '019aa000-0000-7000-8000-000000000000',
  allowed: true,
  reason: 'ok',
  denied_by: '',
  retry_after_ms: 0,
  limits: [limit('minute'), limit('day')],
}

const text = { type: 'string' }
const integer = { type: 'integer' }
const limitSchema = {
  type: 'object',
  properties: { name: text, size: integer, used: integer, remaining: integer, reset_ms: integer },
}

/** With a response schema, as Fastify's documentation advises: it answers faster than with JSON.stringify. */
export const schema = {
  response: {
    200: {
      type: 'object',
      properties: {
        id: text,
        allowed: { type: 'boolean' },
        reason: text,
        denied_by: text,
        retry_after_ms: integer,
        limits: { type: 'array', items: limitSchema },
      },
    },
  },
}

/** The request that every server gets. */
export interface CheckRequest {
  Body: { readonly subject: string }
}

/** The caller that a body names. */
export const callerOf = (body: unknown): string =>
  typeof body === 'object' && body !== null && 'subject' in body ? String(body.subject) : ''

/** As long as others wait for Redis on a busy machine: an answer without Weir would measure nothing. */
export const clientTimeoutMs = 5_000

/** What these servers are told on their command lines; empty where one needs it not. */
export interface Arguments {
  readonly port: number
  readonly redisUrl: string
  readonly upstreamUrl: string
  readonly weirUrl: string
  readonly leases: boolean
}

/** `--port N --redis URL --upstream URL --weir URL --leases`, the same for all of these servers. */
export function readArguments(): Arguments {
  const text = { type: 'string' } as const
  const flag = { type: 'boolean' } as const
  const { values } = parseArgs({ options: { port: text, redis: text, upstream: text, weir: text, leases: flag } })
  const { port, redis = '', upstream = '', weir = '', leases = false } = values
  return { port: Number(port), redisUrl: redis, upstreamUrl: upstream, weirUrl: weir, leases }
}

/** The ingress keeps idle connections as long. */
export const newServer = (): FastifyInstance => fastify({ keepAliveTimeout: 75_000 })
