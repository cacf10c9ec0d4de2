import { decodeEscapes } from '@weir/core/http/decode-escapes.ts'
import type { Route } from '../policy.ts'

/** The word that routes for descriptors of Envoy's rate limit service have instead of a method. */
export const descriptorMethod = 'DESCRIPTOR'

/** One key and value of a descriptor. */
export interface DescriptorEntry {
  readonly key: string
  readonly value: string
}

/** The attributes that entries with these keys are: of a key that comes again the second is `KEY#2`, and so on. */
export function attributesOfKeys(keys: readonly string[]): readonly string[] {
  const seen = new Map<string, number>()
  return keys.map((key) => {
    const times = (seen.get(key) ?? 0) + 1
    seen.set(key, times)
    return times === 1 ? key : `${key}#${times}`
  })
}

/** Finds which route a descriptor belongs to. */
export type DescriptorMatcher = ReturnType<typeof createDescriptorMatcher>

interface Node {
  readonly written: Map<string, Node>
  /** The longest first. */
  readonly beginnings: { readonly text: string; readonly node: Node }[]
  any: Node | undefined
  route: Route | undefined
}

const newNode = (): Node => ({ written: new Map(), beginnings: [], any: undefined, route: undefined })

/** Returns a matcher of the routes with the method `DESCRIPTOR`; the others are ignored. */
export function createDescriptorMatcher(routes: readonly Route[]) {
  const domains = new Map<string, Node>()
  for (const route of routes) if (route.method === descriptorMethod) addRoute(domains, route)
  return {
    /** Whether the policy has routes for descriptors of this domain: then their entries mean only what these say. */
    knows: (domain: string): boolean => domains.has(domain),
    /**
     * The most specific route with as many entries, compared from the left: a written value before a beginning (`foo*`,
     * the longer one first), that before `:any`. Keys are compared as they are.
     */
    match(domain: string, entries: readonly DescriptorEntry[]): Route | undefined {
      const node = domains.get(domain)
      return node === undefined ? undefined : search(node, entries, 0)
    },
  }
}

function addRoute(domains: Map<string, Node>, route: Route): void {
  const [domain = '', ...segments] = segmentsOf(route.path)
  let node = written(domains, decodeURIComponent(domain))
  for (const [at, segment] of segments.entries()) {
    if (at % 2 === 0) node = written(node.written, decodeURIComponent(segment))
    else if (segment.startsWith(':')) {
      node.any ??= newNode()
      node = node.any
    } else if (segment.endsWith('*')) node = beginning(node, decodeURIComponent(segment.slice(0, -1)))
    else node = written(node.written, segment === emptyValue ? '' : decodeURIComponent(segment))
  }
  node.route = route
}

/** Visits each node at most once per entry: written, beginnings and any lead to different ones. */
function search(node: Node, entries: readonly DescriptorEntry[], at: number): Route | undefined {
  const entry = entries[at]
  if (entry === undefined) return node.route
  const values = node.written.get(entry.key)
  if (values === undefined) return undefined
  const exact = values.written.get(entry.value)
  const found = exact === undefined ? undefined : search(exact, entries, at + 1)
  if (found !== undefined) return found
  for (const { text, node: next } of values.beginnings) {
    const route = entry.value.startsWith(text) ? search(next, entries, at + 1) : undefined
    if (route !== undefined) return route
  }
  return values.any === undefined ? undefined : search(values.any, entries, at + 1)
}

function written(nodes: Map<string, Node>, text: string): Node {
  const found = nodes.get(text) ?? newNode()
  nodes.set(text, found)
  return found
}

function beginning({ beginnings }: Node, text: string): Node {
  const known = beginnings.find((one) => one.text === text)
  if (known !== undefined) return known.node
  const node = newNode()
  beginnings.push({ text, node })
  beginnings.sort((a, b) => b.text.length - a.text.length)
  return node
}

/** How a value that is empty is written in a path. */
const emptyValue = '%00'

const segmentsOf = (path: string) => path.slice(1).split('/')

/** A text as a segment of a route's path: nothing in it but the text itself. */
export function descriptorSegment(text: string): string {
  if (text === '') return emptyValue
  return encodeURIComponent(text).replaceAll(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`)
}

/**
 * The path of a descriptor's route in its one form, or why it is none: `/DOMAIN/KEY/VALUE…`, with a key and a value
 * for every entry.
 */
export function readDescriptorPath(path: string): { readonly path: string } | { readonly why: string } {
  const segments = segmentsOf(path)
  if (segments.length < 3 || segments.length % 2 === 0) {
    return { why: 'must be /DOMAIN/KEY/VALUE, with a key and a value for each entry in the descriptor' }
  }
  if (segments.includes('')) return { why: `has an empty segment; write an empty value as ${emptyValue}` }
  const read: string[] = []
  for (const [at, segment] of segments.entries()) {
    const isValue = at > 0 && at % 2 === 0
    const isPattern = segment.startsWith(':') || (segment.endsWith('*') && segment.length > 1)
    if (isPattern && !isValue) return { why: `has the pattern ${segment} where only a key or the domain is allowed` }
    const text = decodeEscapes(segment.startsWith(':') || !isPattern ? segment : segment.slice(0, -1))
    if (text === undefined) return { why: 'has a broken percent-escape' }
    if (segment.startsWith(':')) read.push(segment)
    else read.push(isPattern ? `${descriptorSegment(text)}*` : descriptorSegment(text === '\0' ? '' : text))
  }
  return { path: `/${read.join('/')}` }
}
