import { WeirError } from '@weir/core/errors.ts'
import { isRedisFault } from '@weir/redis/limit-connection.ts'
import { networkScope } from '@weir/runtime/address-scope.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import { isKnown } from '@weir/runtime/serve-description.ts'
import type { FastifyBaseLogger, FastifyInstance, FastifyReply } from 'fastify'
import { cursorInvalid, linkOf, readCursor, writeCursor } from '../http/cursor.ts'
import { etagOf } from '../http/etag.ts'
import { addressesHidden, answerProblem, blocksUnavailable, policyUnread } from '../http/problems.ts'
import { address, closed, object, operation, problems, text, textOrNull } from '../http/schemas.ts'
import type { Ports } from '../ports.ts'
import { noRedis } from './count-change.ts'
import { type Block, listBlocks } from './list-blocks.ts'

const path = '/v1/blocks'
/** Blocks of a page: each is some 400 bytes. */
const pageMax = 1_000

const block = object({
  id: text('for POST /v1/blocks/{id}/lift'),
  limit: text('of the limit'),
  subject: textOrNull('whose; null where subjects share the count'),
  ip: textOrNull('the blocked address or IPv6 network; null where the limit counts by none, or where records lack it'),
  scope: {
    type: 'object',
    additionalProperties: { type: 'string' },
    description: 'what the limit counted by beyond the subject, as recorded',
  },
  since: text('RFC 3339; when it was set'),
  until: text('RFC 3339; when it ends, by the clock of Redis'),
  refusals: { type: 'integer', description: 'requests refused since then' },
  decision: text('id of the refusal that seems to have set it'),
})

const answered = {
  description: 'Blocks that stand now, the newest first; as text one address or IPv6 network a line, sorted',
  content: {
    'application/json': {
      schema: object({
        complete: { type: 'boolean', description: 'false: there may be more than were found' },
        items: { type: 'array', items: block },
        next: textOrNull('`after` of the next page; null on the last'),
      }),
    },
    'text/plain': { schema: { type: 'string' } },
  },
}
const unchanged = { description: 'The list has not changed', type: 'null' }

interface Query {
  readonly limit?: string
  readonly subject?: string
  readonly ip?: string
  readonly format: 'json' | 'text'
  readonly after?: string
}

const query = {
  limit: text('only blocks of this limit'),
  subject: text('only blocks of this subject, `ip:ADDRESS` for an anonymous caller'),
  ip: text('only blocks of this address, as far as records have it, or its hash'),
  format: { type: 'string', enum: ['json', 'text'], default: 'json', description: '`text`: the addresses alone' },
  after: { type: 'string', description: '`next` of the page before, with the same question' },
} as const

/** Only the log gets the servers' own words: they may hold an address or a user. */
function unavailable(reply: FastifyReply, error: unknown, log: FastifyBaseLogger) {
  log.error({ err: error }, 'blocks could not be listed')
  const from = error instanceof WeirError || isRedisFault(error) ? 'Redis' : 'ClickHouse'
  return answerProblem(reply, blocksUnavailable(`${from} did not answer. Ask again; it is safe to repeat.`))
}

/** Sends the blocked addresses, or nothing where the caller has them already. */
function answerText(reply: FastifyReply, blocks: readonly Block[], isWhole: boolean, known: string | undefined) {
  const hidden = blocks.filter(({ isAddressHidden }) => isAddressHidden).length
  if (hidden > 0) {
    return answerProblem(
      reply,
      addressesHidden(
        `${hidden} of the blocks are of addresses that the records do not have: the ingress runs with WEIR_RECORD_ADDRESS other than full. ` +
          'Set it to full, or ask for a limit that counts by no address (?limit=).',
      ),
    )
  }
  const lines = [...new Set(blocks.flatMap(({ ip }) => ip ?? []))].sort()
  const body = lines.map((line) => `${line}\n`).join('')
  const etag = etagOf(body)
  reply.header('etag', etag).header('cache-control', 'private, no-cache').header('weir-complete', String(isWhole))
  if (isKnown(known, etag)) return reply.code(304).send()
  return reply.type('text/plain; charset=utf-8').send(body)
}

const shown = ({ sinceMs, untilMs, isAddressHidden: _, ...one }: Block) => ({
  ...one,
  since: new Date(sinceMs).toISOString(),
  until: new Date(untilMs).toISOString(),
})

const listed = operation('read', 'blocks', 'Who is blocked now', {
  query,
  described: { querystring: closed({ ...query, ip: address(query.ip.description) }) },
  response: { 200: answered, 304: unchanged, ...problems(409, 503) },
})

/** `GET /v1/blocks`: which callers limits block now, as JSON or as a list for firewalls. */
export function registerBlocks(app: FastifyInstance, ports: Ports): void {
  app.get<{ Querystring: Query }>(
    path,
    { ...listed, config: { ...listed.config, orScope: 'limits' } },
    async (request, reply) => {
      const { query: asked, headers, by, reach, log } = request
      const { blocks: finders, clock, policy } = ports
      if (finders === undefined) {
        return answerProblem(reply, noRedis)
      }
      if (policy.state === undefined) return answerProblem(reply, policyUnread)
      const { policy: known } = policy.state
      const { ipv6Prefix } = known.identity
      const address = asked.ip === undefined ? undefined : networkScope(asked.ip, ipv6Prefix)
      if (address === '') {
        return answerProblem(reply, badRequest(`ip takes an IPv4 or IPv6 address, not ${JSON.stringify(asked.ip)}`))
      }
      const { after, format, ...given } = asked
      const owner = { path, given, by, reach }
      const cursor = after === undefined ? undefined : readCursor(after, owner)
      if (after !== undefined && cursor === undefined) return answerProblem(reply, cursorInvalid)
      try {
        const question = { limit: asked.limit, subject: asked.subject, address }
        const { blocks, isWhole } = await listBlocks({ blocks: finders, clock }, known, reach, question)
        if (format === 'text') return answerText(reply, blocks, isWhole, headers['if-none-match'])
        const [since = '', last = ''] = cursor?.place ?? []
        const isBehind = ({ sinceMs, id }: Block) => sinceMs < Number(since) || (sinceMs === Number(since) && id < last)
        const sorted = [...blocks].sort((a, b) => b.sinceMs - a.sinceMs || (a.id < b.id ? 1 : -1))
        const left = cursor === undefined ? sorted : sorted.filter(isBehind)
        const items = left.slice(0, pageMax)
        const end = left.length > pageMax ? items.at(-1) : undefined
        const atMs = cursor?.atMs ?? clock.nowMs()
        const next = end === undefined ? null : writeCursor(owner, { atMs, place: [String(end.sinceMs), end.id] })
        if (next !== null) reply.header('link', linkOf(path, request.url, next))
        return { complete: isWhole, items: items.map(shown), next }
      } catch (error) {
        return unavailable(reply, error, log)
      }
    },
  )
}
