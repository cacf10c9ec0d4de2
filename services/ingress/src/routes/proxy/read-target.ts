import type { IncomingMessage } from 'node:http'
import { type MarkedPath, readMarkedPath } from '@weir/core/http/marked-path.ts'
import { normalizePath, readOddPath } from '@weir/core/http/normalize-path.ts'
import { badRequest, hasTooManyHeaders, headersTooLarge, type Problem } from '@weir/runtime/problem.ts'

/** Bytes of all headers of a request: enough for a large cookie and a signed token. */
export const headerBytesMax = 32_768
const tooLarge: Problem = headersTooLarge(headerBytesMax)

/** What a request asks for. */
export interface Target {
  /** In the one form that is matched and forwarded. */
  readonly path: string
  /** Of a path that only a request without a route may have: see `readOddPath`. */
  readonly readings?: readonly string[] | undefined
  /** Of a path with marks, which only some upstreams take as it is; for the others it is refused, or `path`. */
  readonly marked?: (MarkedPath & { readonly refusal?: Problem }) | undefined
  /** With its question mark, as it came; empty without. */
  readonly query: string
}

/** A name, an address or nothing, and maybe a port. */
const hostForm = /^[\w.~%:[\]-]*$/

/** Reads request line and framing; a problem where two readers could see two requests. */
export function readTarget(request: IncomingMessage): { readonly target: Target } | { readonly problem: Problem } {
  if (!(request.url ?? '').startsWith('/')) takeAbsoluteForm(request)
  const { url = '' } = request
  if (!url.startsWith('/')) return refused('The request line needs a path that begins with a slash.')
  if (url.includes('#')) return refused('The request line must not contain a fragment (#).')
  const problem = headProblem(request)
  if (problem !== undefined) return { problem }
  const queryAt = url.indexOf('?')
  const rawPath = queryAt === -1 ? url : url.slice(0, queryAt)
  const query = queryAt === -1 ? '' : url.slice(queryAt)
  const path = normalizePath(rawPath)
  if (path.kind === 'path' && path.path === rawPath) return { target: { path: rawPath, query } }
  const marked = readMarkedPath(rawPath)
  if (path.kind === 'path') return { target: { path: path.path, marked, query } }
  const odd = readOddPath(rawPath)
  if (odd !== undefined) return { target: { ...odd, query } }
  const { problem: refusal } = refused(`The path is ambiguous: it ${path.why}.`)
  return marked === undefined ? { problem: refusal } : { target: { path: '', marked: { ...marked, refusal }, query } }
}

/**
 * Takes scheme and authority off an absolute form (RFC 9112 section 3.2.2): the authority counts instead of `Host`,
 * which must be there nevertheless, but in HTTP/1.0. Anything else stays as it is.
 */
function takeAbsoluteForm(request: IncomingMessage): void {
  const [, authority, rest = ''] = /^https?:\/\/([\w.~%:[\]-]+)([/?].*)?$/i.exec(request.url ?? '') ?? []
  if (authority === undefined || (request.headers.host === undefined && request.httpVersionMinor > 0)) return
  request.headers.host = authority
  request.url = rest.startsWith('/') ? rest : `/${rest}`
}

function headProblem(request: IncomingMessage): Problem | undefined {
  if (hasTooManyHeaders(request)) return tooLarge
  const { rawHeaders, headers, httpVersionMinor } = request
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1
  }
  if (hosts > 1 || (hosts === 0 && httpVersionMinor > 0) || !hostForm.test(headers.host ?? '')) {
    return badRequest('Send exactly one Host header: a name with or without a port.')
  }
  const coding = headers['transfer-encoding']
  // Any other coding would be taken off or left on by guess; HTTP/1.0 has none.
  if (coding !== undefined && (coding.toLowerCase() !== 'chunked' || httpVersionMinor === 0)) {
    return badRequest('Only the transfer coding "chunked" is supported, and only in HTTP/1.1.')
  }
  return undefined
}

const refused = (detail: string) => ({ problem: badRequest(detail) })

/** Without the parameters of a name, by their decoded names; the others stay letter for letter. */
export function withoutParameter(query: string, name: string): string {
  const kept = query
    .slice(1)
    .split('&')
    .filter((pair) => ![...new URLSearchParams(pair).keys()].includes(name))
  return kept.length === 0 || kept.every((pair) => pair === '') ? '' : `?${kept.join('&')}`
}
