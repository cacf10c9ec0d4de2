import { timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { serverException } from '../engine/exception.ts'

function credentials(parameters: URLSearchParams, headers: IncomingHttpHeaders): { user: string; password: string } {
  const header = (name: string) => [headers[name]].flat()[0]
  const user = header('x-clickhouse-user')
  const key = header('x-clickhouse-key')
  if (user !== undefined || key !== undefined) return { user: user || 'default', password: key ?? '' }
  const [scheme = '', encoded = ''] = (headers.authorization ?? '').split(' ')
  if (scheme.toLowerCase() === 'basic') {
    const text = Buffer.from(encoded, 'base64').toString()
    const colon = text.indexOf(':')
    return { user: text.slice(0, colon) || 'default', password: text.slice(colon + 1) }
  }
  if (scheme !== '') return { user: scheme, password: encoded }
  return { user: parameters.get('user') || 'default', password: parameters.get('password') ?? '' }
}

/** Throws unless the request is of the one user, `default`, with the password that the server was started with. */
export function authenticate(parameters: URLSearchParams, headers: IncomingHttpHeaders, password: string): void {
  const given = credentials(parameters, headers)
  const [mine, theirs] = [Buffer.from(password), Buffer.from(given.password)]
  if (given.user === 'default' && mine.length === theirs.length && timingSafeEqual(mine, theirs)) return
  throw serverException(
    516,
    `${given.user}: Authentication failed: password is incorrect, or there is no user with such name`,
  )
}

const loopback = new Set(['127.0.0.1', 'localhost', '[::1]'])

function nameOf(host: string): string | undefined {
  try {
    return new URL(`http://${host}`).hostname
  } catch {
    return undefined
  }
}

/**
 * Returns why a request is refused as one that a browser sends for a web page; undefined for a program's. A page may
 * send a statement to any port of the machine without asking first; by a name of its own that leads here it could also
 * read the answer.
 */
export function webPage(headers: IncomingHttpHeaders, listensOn: string): string | undefined {
  const { host = '', origin, 'sec-fetch-site': site } = headers
  const name = nameOf(host)
  if (name === undefined || (!loopback.has(name) && name !== listensOn)) {
    return `This server is known as 127.0.0.1 or localhost, not as "${host}"`
  }
  if (origin !== undefined) return `This server answers no web page (Origin: ${origin})`
  if (site !== undefined && site !== 'none') return `This server answers no web page (Sec-Fetch-Site: ${site})`
  return undefined
}
