import { listBlocks } from '@weir/api/limits.ts'
import { WeirError } from '@weir/core/errors.ts'
import { networkContains } from '@weir/policy/policy-values.ts'
import { isRedisFault } from '@weir/redis/limit-connection.ts'
import { networkScope } from '@weir/runtime/address-scope.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import { isKnown } from '@weir/runtime/serve-description.ts'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { cursorInvalid } from '../http/cursor.ts'
import { etagOf } from '../http/etag.ts'
import { openPages } from '../http/page.ts'
import { addressesHidden, answerProblem, blocksUnavailable, policyUnread } from '../http/problems.ts'
import { serveQuestion } from '../http/question-failure.ts'
import type { Sources } from '../sources.ts'
import { noRedis } from './count-change.ts'
import { type Block, findBlocks } from './list-blocks.ts'
import { manualBlocks, shownBlock } from './manual-blocks.ts'

/** Blocks of a page: each is some 400 bytes. */
const pageMax = 1_000

/** Only the log gets the servers' own words: they may hold an address or a user. */
const unanswered = {
  what: 'blocks could not be listed',
  problem: (error: unknown) => {
    const from = error instanceof WeirError || isRedisFault(error) ? 'Redis' : 'ClickHouse'
    return blocksUnavailable(`${from}did not respond. Try again; repeating the request is safe.`)
  },
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
  const exempt = blocks.flatMap((one) => (one.exempt === true ? (one.ip ?? []) : []))
  const blocked = blocks.flatMap((one) => (one.exempt === true ? [] : (one.ip ?? [])))
  const isExempt = (ip: string) => exempt.some((one) => networkContains(one, ip))
  const lines = [...new Set(blocked.filter((ip) => !isExempt(ip)))].sort()
  const body = lines.map((line) => `${line}\n`).join('')
  const etag = etagOf(body)
  reply.header('etag', etag).header('cache-control', 'private, no-cache').header('weir-complete', String(isWhole))
  if (isKnown(known, etag)) return reply.code(304).send()
  return reply.type('text/plain; charset=utf-8').send(body)
}

/** `GET /v1/blocks`: which callers limits block now, as JSON or as a list for firewalls. */
export function registerBlocks(app: FastifyInstance, sources: Sources): void {
  serveQuestion(app, listBlocks, unanswered, async (request, reply) => {
    const { query: asked, headers, reach } = request
    const { limits, clock, policy } = sources
    if (limits === undefined) return answerProblem(reply, noRedis)
    if (policy.state === undefined) return answerProblem(reply, policyUnread)
    const { policy: known } = policy.state
    const { ipv6Prefix } = known.identity
    const address = asked.ip === undefined ? undefined : networkScope(asked.ip, ipv6Prefix)
    if (address === '') {
      return answerProblem(reply, badRequest(`ip must be an IPv4 or IPv6 address, not ${JSON.stringify(asked.ip)}`))
    }
    const pages = openPages(request, listBlocks.path, asked, clock.nowMs())
    if (pages.isAstray()) return answerProblem(reply, cursorInvalid)
    const question = { limit: asked.limit, subject: asked.subject, address }
    const found = await findBlocks({ limits, clock }, known, reach, question)
    // A firewall asks for some limits; addresses that were blocked by hand belong into its list in any case.
    const byHand = asked.format === 'text' ? { ...question, limit: undefined } : question
    const blocks = [...manualBlocks(policy.state, byHand, clock.nowMs()), ...found.blocks]
    const { isWhole } = found
    if (asked.format === 'text') return answerText(reply, blocks, isWhole, headers['if-none-match'])
    const [since = '', last = ''] = pages.after ?? []
    const isBehind = ({ sinceMs, id }: Block) => sinceMs < Number(since) || (sinceMs === Number(since) && id < last)
    const sorted = [...blocks].sort((a, b) => b.sinceMs - a.sinceMs || (a.id < b.id ? 1 : -1))
    const left = pages.after === undefined ? sorted : sorted.filter(isBehind)
    const { rows, next } = pages.cut(reply, left, pageMax, (end) => [String(end.sinceMs), end.id])
    return { complete: isWhole, items: rows.map(shownBlock), next }
  })
}
