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

/** There is one user, `default`; with the password that the server was started with, or none. */
export function authenticate(parameters: URLSearchParams, headers: IncomingHttpHeaders, password: string): void {
  const given = credentials(parameters, headers)
  const [mine, theirs] = [Buffer.from(password), Buffer.from(given.password)]
  if (given.user === 'default' && mine.length === theirs.length && timingSafeEqual(mine, theirs)) return
  throw serverException(
    516,
    `${given.user}: Authentication failed: password is incorrect, or there is no user with such name`,
  )
}
