import { isIP } from 'node:net'
import type { CheckRequest } from './check-request.ts'
import { type CheckResult, unauthorizedResult } from './check-result.ts'
import { WeirClientError } from './client-error.ts'
import type { WeirClient } from './create-client.ts'
import { durationMs } from './duration.ts'
import { type Refusal, refusalOf, unreadable } from './refusal.ts'

/** The parts of a framework's request that the library reads. */
export interface Arrival {
  readonly method?: string | undefined
  readonly ip?: string | undefined
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

/** Holds a request's result as `request.weir`. Mix it into your framework's request type to read it. */
export interface WithWeir {
  weir?: CheckResult | undefined
}

/** The check that a request needs; undefined lets the request pass without one. */
export type OptionalCheck = CheckRequest | undefined

/** Whether it is still to come: of any library's promises. */
const isPromised = <T>(found: T | PromiseLike<T>): found is PromiseLike<T> =>
  typeof found === 'object' && found !== null && 'then' in found && typeof found.then === 'function'

/** What the middleware does with a request. */
export type CheckOutcome =
  | { readonly kind: 'pass'; readonly result: CheckResult | undefined }
  | { readonly kind: 'refuse'; readonly refusal: Refusal }
  | { readonly kind: 'drop' }

/** `METHOD /path`, without the query. */
export const routeOf = (method: string | undefined, url: string | undefined): string =>
  `${method ?? 'GET'} ${(url ?? '/').split('?')[0]}`

/**
 * Returns the API key that a request carries, as Weir's own entry points read it: `Authorization: Bearer KEY`, else
 * `X-API-Key`. Empty without one; a check whose `key` is empty is answered with 401 without asking Weir.
 */
export function callerKey({ headers }: Pick<Arrival, 'headers'>): string {
  const { authorization, 'x-api-key': apiKey } = headers
  const [, bearer] = typeof authorization === 'string' ? (/^Bearer +(\S+)$/i.exec(authorization) ?? []) : []
  return bearer ?? (typeof apiKey === 'string' ? apiKey : '')
}

/** The parts of a response that tell whether its connection is closed. */
export interface Leaving {
  /** Whether it is closed. */
  readonly destroyed?: boolean | undefined
  once(event: 'close', listener: () => void): unknown
  removeListener(event: 'close', listener: () => void): unknown
}

/** Weir's keys are never longer, and it accepts no longer text as one. */
const keyLengthMax = 256
/** Weir answers no check of a longer route. */
const routeLengthMax = 2_048
/** Weir counts by attributes of at most this length. */
const attributeLengthMax = 256

/**
 * Asks Weir about a request, unless units were taken ahead, and decides what to do with it. A client that leaves while
 * its check waits leaves Weir's queue too.
 */
function checkArrival(
  client: WeirClient,
  asked: OptionalCheck,
  response: Leaving,
): CheckOutcome | Promise<CheckOutcome> {
  // The client has left, perhaps while `ask` was looking something up.
  if (response.destroyed === true) return { kind: 'drop' }
  if (asked === undefined) return { kind: 'pass', result: undefined }
  if (asked.key === '' || (asked.key?.length ?? 0) > keyLengthMax) {
    return { kind: 'refuse', refusal: refusalOf(unauthorizedResult) }
  }
  const { route } = asked
  const request = route?.includes('?') === true ? { ...asked, route: route.split('?', 1)[0] } : asked
  const decided = client.tryCheck(request)
  return decided === undefined ? ask(client, request, response) : outcomeOf(decided)
}

function outcomeOf(result: CheckResult | undefined): CheckOutcome {
  if (result?.allowed) return { kind: 'pass', result }
  if (result === undefined || result.onExceed === 'drop') return { kind: 'drop' }
  return { kind: 'refuse', refusal: refusalOf(result) }
}

async function ask(client: WeirClient, request: CheckRequest, response: Leaving): Promise<CheckOutcome> {
  try {
    const mayWait = durationMs(request.wait ?? 0) > 0
    return outcomeOf(mayWait ? await wait(client, request, response) : await client.check(request))
  } catch (error) {
    const isMalformed = error instanceof WeirClientError && error.code === 'bad_request'
    if (isMalformed && hasUnusualInput(request)) return { kind: 'refuse', refusal: unreadable }
    throw error
  }
}

/**
 * Whether a value that the caller chose may be why Weir refused the check: it always accepts plain paths and addresses.
 */
const hasUnusualInput = ({ route = '', ip = '', attributes = {} }: CheckRequest) =>
  route.length > routeLengthMax ||
  Object.values(attributes).some((value) => typeof value === 'string' && value.length > attributeLengthMax) ||
  !/^(?:[A-Za-z-]* )?(?:\/[\w.~!$&'()*+,=:@/-]*)?$/.test(route) ||
  (ip !== '' && isIP(ip) === 0)

async function wait(client: WeirClient, asked: CheckRequest, response: Leaving): Promise<CheckResult | undefined> {
  const left = new AbortController()
  const leave = () => left.abort()
  response.once('close', leave)
  try {
    return await client.check(asked, { signal: left.signal })
  } catch (error) {
    if (!left.signal.aborted) throw error
    return undefined // No client is left to answer.
  } finally {
    response.removeListener('close', leave)
  }
}

/** Requests whose `weir-degraded` was stored by a check. */
const degraded = new WeakSet<object>()

/** Stores the result on the request: as `weir`, and for the application as the header that Weir's proxy would send. */
export function storeResult(request: Arrival & WithWeir, result: CheckResult | undefined): void {
  if (result !== undefined) request.weir = result
  const headers: Record<string, string | string[] | undefined> = request.headers
  // A client's own header must not be trusted; what another check of the same request has stored stays.
  if (headers['weir-degraded'] !== undefined && !degraded.has(request)) delete headers['weir-degraded']
  if (result?.onExceed !== 'degrade') return
  headers['weir-degraded'] = result.deniedBy
  degraded.add(request)
}

/**
 * Takes a request from its question to `answer`, at once where no promise is on the way: else the result is one. What
 * throws rejects.
 */
export function arrive(
  ask: () => OptionalCheck | PromiseLike<OptionalCheck>,
  client: WeirClient,
  response: Leaving,
  answer: (fate: CheckOutcome) => boolean,
): boolean | Promise<boolean> {
  try {
    const asked: OptionalCheck | PromiseLike<OptionalCheck> = ask()
    const fate = isPromised(asked)
      ? Promise.resolve(asked).then((found) => checkArrival(client, found, response))
      : checkArrival(client, asked, response)
    return isPromised(fate) ? Promise.resolve(fate).then(answer) : answer(fate)
  } catch (error) {
    return Promise.reject(error)
  }
}
