import type { CheckResult } from './check-result.ts'
import type { Problem } from './client-error.ts'

/** The answer to a denied request, as Weir's own proxy would give it. */
export interface Refusal {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly problem: Problem
}

const registered = (word: string) => `https://iana.org/assignments/http-problem-types#${word}`

/** Returns the answer to a denied request, as problem+json by RFC 9457. */
export function refusalOf(result: CheckResult): Refusal {
  const problem = problemOf(result)
  const headers: Record<string, string> = { ...result.headers, ...noStore }
  if (problem.status === 401) headers['www-authenticate'] = 'Bearer'
  if (result.challenge !== undefined) headers['weir-challenge'] = result.challenge
  return { status: problem.status, headers, problem }
}

const noStore = { 'content-type': 'application/problem+json', 'cache-control': 'no-store' }

/** The answer to a request that Weir refuses to check because of what its caller sent. */
export const unreadable: Refusal = {
  status: 400,
  headers: noStore,
  problem: {
    type: 'urn:weir:problem:bad-request',
    title: 'Bad request',
    status: 400,
    detail: 'The path, the address or an attribute of this request is too long or ambiguous.',
  },
}

function problemOf({ reason, deniedBy, challenge, suspended, headers }: CheckResult): Problem {
  const seconds = headers['retry-after'] ?? '1'
  switch (reason) {
    case 'unauthorized':
      return {
        type: 'urn:weir:problem:unauthorized',
        title: 'Unauthorized',
        status: 401,
        detail: 'Send a valid key as "Authorization: Bearer KEY" or "X-API-Key: KEY".',
      }
    case 'cost_exceeds_limit':
      return {
        type: 'urn:weir:problem:cost-exceeds-limit',
        title: 'Cost exceeds limit',
        status: 403,
        detail: `This request costs more units than the limit ${deniedBy} can ever allow. Waiting does not help.`,
        'violated-policies': [deniedBy],
      }
    case 'unavailable':
    case 'journal_full':
      return {
        type: registered('temporary-reduced-capacity'),
        title: 'Temporarily reduced capacity',
        status: 503,
        detail: `The request could not be ${reason === 'unavailable' ? 'checked' : 'recorded'}. Try again in ${seconds} s.`,
        'violated-policies': deniedBy === '' ? [] : [deniedBy],
      }
    default:
      if (reason === 'blocked' && deniedBy === '') {
        const [word, title] = suspended === undefined ? ['blocked', 'Blocked'] : ['suspended', 'Suspended']
        const detail = suspended ?? `Requests from this caller are blocked for ${seconds} s.`
        return { type: `urn:weir:problem:${word}`, title, status: 403, detail }
      }
      if (deniedBy === '_markers') {
        return {
          type: 'urn:weir:problem:too-many-open',
          title: 'Too many open decisions',
          status: 429,
          detail: `This subject has too many open idempotency keys and unsettled decisions. Try again in ${seconds} s, or send the request without them.`,
          'violated-policies': [deniedBy],
        }
      }
      return {
        type: registered('quota-exceeded'),
        title: 'Quota exceeded',
        status: 429,
        detail:
          reason === 'blocked'
            ? `The limit ${deniedBy} was exceeded, and the caller is blocked. Try again in ${seconds} s; earlier attempts do not extend the block.`
            : `The limit ${deniedBy} is used up. Try again in ${seconds} s.`,
        'violated-policies': [deniedBy],
        ...(challenge === undefined ? {} : { challenge }),
      }
  }
}
