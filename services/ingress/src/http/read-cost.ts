import type { IncomingHttpHeaders } from 'node:http'
import { laxName } from '@weir/core/http/lax-name.ts'
import { costMax } from '@weir/core/limits/limit-store.ts'
import type { Route } from '@weir/policy/policy.ts'
import { type Problem, problem } from '@weir/runtime/problem.ts'

/** A cost has at most as many digits as a safe integer. */
const costDigits = /^\d{1,16}$/

/** The problem of a request that does not say its cost as its route requires. Only a parsed body is charged, 1 unit. */
export const costUnreadable = (detail: string, status = 400): Problem =>
  problem('cost-unreadable', 'Cost unreadable', status, detail)

/**
 * What a request costs by its route; `body` when only its JSON body says so. A header or query parameter
 * that is not there means 1; one that is there twice, or is no whole number, is a problem.
 */
export function readCost(
  route: Route,
  request: { readonly headers: IncomingHttpHeaders; readonly url: string },
): number | 'body' | Problem {
  const from = route.costFrom
  if (from === undefined) return route.cost
  if (from.kind === 'json') return 'body'
  const values = valuesAt(from, request)
  const [value] = values
  if (value === undefined) return 1
  const where = `the ${from.kind === 'header' ? 'header' : 'query parameter'} ${from.name}`
  if (values.length > 1) return costUnreadable(`This route's cost is in ${where}, which occurs more than once.`)
  const cost = costDigits.test(value) ? Number(value) : Number.NaN
  if (cost <= costMax) return cost
  return costUnreadable(`This route's cost is in ${where}, which must be a whole number from 0 to ${costMax}.`)
}

/** What stands there; several where it is there twice, or in more than one spelling. */
export const valuesAt = (
  { kind, name }: { readonly kind: 'header' | 'query'; readonly name: string },
  { headers, url }: { readonly headers: IncomingHttpHeaders; readonly url: string },
): readonly string[] => {
  if (kind === 'header') return headerValues(headers, name)
  return hasTwins(url, name) ? ['', ''] : queryValues(url, name)
}

/** As Node gives them, a header sent twice is one value with a comma, which is no number, or a list. */
function headerValues(headers: IncomingHttpHeaders, name: string): readonly string[] {
  const value = headers[name.toLowerCase()]
  return value === undefined ? [] : typeof value === 'string' ? [value] : value
}

const queryValues = (url: string, name: string): readonly string[] => new URLSearchParams(queryOf(url)).getAll(name)

const queryOf = (url: string) => (url.includes('?') ? url.slice(url.indexOf('?') + 1) : '')

/**
 * Whether some reader takes another parameter for the one that is charged: by capitals, as an array (`n[]`, `[n]`),
 * with `.` or a blank for `_` (PHP), up to a NUL, behind a `;`, by `%u006E` (ASP.NET), or without bytes that are no
 * UTF-8.
 */
function hasTwins(url: string, name: string): boolean {
  const query = queryOf(url).replaceAll(/%u([\dA-F]{4})/gi, escapeOfUnit)
  const wanted = laxParameter(name)
  const lax = [...new URLSearchParams(query.replaceAll(';', '&')).keys()]
  return lax.filter((key) => laxParameter(key) === wanted).length > queryValues(url, name).length
}

function laxParameter(name: string): string {
  const [bare = ''] = name.split(/[[\]]/).filter((part) => part !== '')
  return laxName(bare.replaceAll('\uFFFD', '').trim()).replaceAll(/[. ]/g, '_')
}

/** `%u006E` as `%6E`; half of a pair as U+FFFD. */
const escapeOfUnit = (_: string, hex: string) =>
  encodeURIComponent(String.fromCharCode(Number.parseInt(hex, 16)).toWellFormed())
