/** Options of a gateway, as query parameters of the address that it calls. */
export interface GatewayOptions {
  readonly kind: 'options'
  /** Answer every refusal of the 400 class but 401 with this status, for gateways that know only 401 and 403. */
  readonly denyStatus: 403 | undefined
  /** The same for the same request of the client, however often the gateway asks: it is charged once. */
  readonly requestId: string | undefined
}

/** The options of a gateway that sets none. */
export const noOptions: GatewayOptions = { kind: 'options', denyStatus: undefined, requestId: undefined }

interface WrongOptions {
  readonly kind: 'wrong'
  /** For people, a sentence. */
  readonly detail: string
}

/** nginx's `$request_id` has 32 characters, a UUID 36. */
const requestIdPattern = /^[\w.:-]{8,128}$/

/**
 * Reads the options in `query` (without `?`), or what is wrong with them. Some gateways append the client's own query
 * when they call Weir, which must not be taken for theirs: the end of the original request is never an option.
 */
export function readGatewayOptions(query: string, originalUrl: string): GatewayOptions | WrongOptions {
  if (query === '' || originalUrl.endsWith(`?${query}`)) return noOptions
  const found = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(query)) {
    if (found.has(name)) return wrong(`${name} is there twice.`)
    found.set(name, value)
  }
  const [denyStatus, requestId] = [found.get('deny_status'), found.get('request_id')]
  if (denyStatus !== undefined && denyStatus !== '403') return wrong('deny_status can be 403 only.')
  if (requestId !== undefined && !requestIdPattern.test(requestId)) {
    return wrong('request_id must have 8 to 128 letters, digits, or any of . : _ -')
  }
  for (const name of found.keys()) {
    if (name !== 'deny_status' && name !== 'request_id') {
      return wrong(`There is no option ${JSON.stringify(name)}; there are deny_status and request_id.`)
    }
  }
  return { kind: 'options', denyStatus: denyStatus === undefined ? undefined : 403, requestId }
}

const wrong = (detail: string): WrongOptions => ({ kind: 'wrong', detail })
