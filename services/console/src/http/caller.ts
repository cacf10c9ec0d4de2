import { hash } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Reach } from '@weir/core/usage/reach.ts'
import { callerAddress } from '@weir/identity/caller-address.ts'
import { keyInForce } from '@weir/identity/credential.ts'
import { createAuthFailureThrottle } from '@weir/identity/guess-protection.ts'
import { identityRules } from '@weir/identity/identity-rules.ts'
import { createPortalTokens, portalPrefix } from '@weir/identity/portal-tokens.ts'
import { subjectScopes, type TokenScope, tokenInForce } from '@weir/policy/access-token.ts'
import { ancestorsOf } from '@weir/policy/ancestors.ts'
import { mayBeSubject } from '@weir/policy/named-subject.ts'
import { isSelfService, type Policy } from '@weir/policy/policy.ts'
import { createAdminCheck, fingerprint } from '@weir/runtime/admin-token.ts'
import { badRequest, type Problem, problem } from '@weir/runtime/problem.ts'

/** The audit's name for a caller with the token of the environment. No token of the policy may have this name. */
export const rootName = 'root'

/** Who asks. */
export interface Caller {
  /** Name of the caller's token, `root` for the one of the environment; of a key `key ID`. */
  readonly by: string
  /** What the caller may do. */
  readonly scopes: readonly TokenScope[]
  /** Whose rows the caller may read. */
  readonly reach: Reach
}

/** What a credential is found by. */
export interface CallerSources {
  readonly rootSha256: () => string
  readonly portalKey: () => string
  /** Undefined until the policy was read. */
  readonly policy: () => Policy | undefined
  readonly nowMs: () => number
  /** Never goes back. */
  readonly elapsedMs?: () => number
}

/** Looks a credential up again. */
export type FindAgain = () => Caller | undefined | Promise<Caller | undefined>

/** A caller, or why there is none; `retryAfterS` where too many wrong keys came from the address. */
export type FoundCaller =
  | {
      readonly kind: 'caller'
      readonly caller: Caller
      readonly findAgain: FindAgain
      /** What the credential is known by. */
      readonly sha256: string
    }
  | { readonly kind: 'refused'; readonly problem: Problem; readonly retryAfterS?: number }

const unauthorized = problem(
  'unauthorized',
  'Unauthorized',
  401,
  'Send a valid token as "Authorization: Bearer TOKEN". A key works only if its subject or plan has `selfService`.',
)
const tooManyWrong: Problem = {
  type: 'https://iana.org/assignments/http-problem-types#abnormal-usage-detected',
  title: 'Too many wrong credentials',
  status: 429,
  detail: 'Too many wrong credentials from this address. A valid credential is still accepted.',
}
const twoCredentials = badRequest('Send only one credential: Authorization or X-API-Key.')

/** The credential of an `Authorization: Bearer` header; empty if there is none. */
const bearer = (authorization = '') => /^bearer (.+)$/i.exec(authorization)?.[1]?.trim() ?? ''

/**
 * What a subject reads: its own rows, and if it is above others now, those of its tree. Rows are sorted by subject, so
 * that those of a tree take a look at all.
 */
function treeOf(id: string, { subjects, identity }: Pick<Policy, 'subjects' | 'identity'>): Reach {
  const { jwt, trustedHeaders } = identity
  // A parent that they name may have subjects below it that the policy does not list.
  const hasUnlisted = jwt.some(({ parentClaim }) => parentClaim) || trustedHeaders?.parentHeader !== undefined
  if (!hasUnlisted && subjects.isParent?.(id) === false) return Reach.of([id])
  return Reach.ofTrees([id], (subject) => ancestorsOf(subjects.get(subject) ?? {}).some((above) => above.id === id))
}

/** Finds who sent a request, by these headers of it. */
export type CallerFinder = (headers: IncomingHttpHeaders, request: Sent) => Promise<FoundCaller>

/** What says from where a request comes. */
type Sent = Pick<IncomingMessage, 'headers' | 'socket'>

/**
 * Returns the one place where a credential becomes a caller with its reach:
 *
 * - The environment's token and tokens of the policy reach everybody, one with `subjects` these subjects.
 * - A portal token reaches its subject and those below it, until it ends or all of the subject's are ended.
 * - A subject's own key reaches its subject and those below it, where `selfService` allows it; elsewhere it is as good
 *   as unknown.
 *
 * Every credential is found by its hash, so that no comparison depends on how much of one was guessed. Wrong ones are
 * limited by address as at the ingress; right ones are accepted whatever came from their address.
 */
export function createCallerFinder(sources: CallerSources): CallerFinder {
  const { rootSha256, portalKey, policy, nowMs, elapsedMs = () => performance.now() } = sources
  const portal = createPortalTokens(portalKey)
  const isRoot = createAdminCheck(rootSha256)
  const countWrong = createAuthFailureThrottle(elapsedMs)

  const byToken = (known: Policy | undefined, sha256: string): Caller | undefined => {
    if (isRoot(sha256)) return { by: rootName, scopes: ['admin'], reach: Reach.everybody }
    const token = known === undefined ? undefined : tokenInForce(known, sha256, nowMs())
    if (known === undefined || token === undefined) return undefined
    const { name: by, scopes, subjects } = token
    if (subjects === undefined) return { by, scopes, reach: Reach.everybody }
    const present = subjects.filter((subject) => mayBeSubject(known, subject))
    return present.length === 0 ? undefined : { by, scopes, reach: Reach.of(present) }
  }

  const byKey = (known: Policy | undefined, sha256: string): Caller | undefined => {
    const key = known === undefined ? undefined : keyInForce(known, sha256, nowMs())
    if (known === undefined || key === undefined || !isSelfService(key.subject)) return undefined
    return { by: `key ${key.id}`, scopes: subjectScopes, reach: treeOf(key.subject.id, known) }
  }

  const byPortal = async (text: string): Promise<Caller | undefined> => {
    const claims = await portal.verify(text, nowMs())
    const known = policy()
    if (claims === undefined || known === undefined || !mayBeSubject(known, claims.subject)) return undefined
    const ended = known.portals.get(claims.subject)
    if (ended !== undefined && ended !== claims.after) return undefined
    return { by: `portal of ${claims.subject}`, scopes: subjectScopes, reach: treeOf(claims.subject, known) }
  }

  const refuse = ({ headers, socket }: Sent): FoundCaller => {
    const known = policy()
    const request = { headers, socket, url: '' }
    const blockedMs = countWrong(known ? callerAddress(request, identityRules(known.identity)) : '')
    if (blockedMs === 0) return { kind: 'refused', problem: unauthorized }
    return { kind: 'refused', problem: tooManyWrong, retryAfterS: Math.ceil(blockedMs / 1_000) }
  }

  return async function findCaller({ authorization = '', 'x-api-key': apiKey = '' }, request) {
    if (authorization !== '' && apiKey !== '') return { kind: 'refused', problem: twoCredentials }
    const sent = authorization === '' ? String(apiKey) : bearer(authorization)
    const isPortal = authorization !== '' && sent.startsWith(portalPrefix)
    const sha256 = isPortal ? hash('sha256', sent, 'hex') : fingerprint(sent)
    if (sha256 === '') return { kind: 'refused', problem: unauthorized }
    const findToken = () => (authorization === '' ? undefined : byToken(policy(), sha256))
    const findAgain = isPortal ? () => byPortal(sent) : () => findToken() ?? byKey(policy(), sha256)
    const caller = await findAgain()
    return caller === undefined ? refuse(request) : { kind: 'caller', caller, findAgain, sha256 }
  }
}
