import { readdir, readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import {
  clientAddressHeaders,
  forwardedPrefix,
  overrideHeaders,
  requestFactHeaders,
  weirPrefix,
} from '@weir/ingress/http/client-headers.ts'
import { expect, test } from 'vitest'

/**
 * Of the prefixes the names that software is known to read: not every gateway can remove headers by their beginning.
 */
const ofPrefixes = [
  ...['subject', 'plan', 'key-id', 'degraded', 'credential'].map((word) => `${weirPrefix}${word}`),
  ...['for', 'host', 'proto', 'port', 'prefix', 'server', 'uri', 'method', 'scheme', 'ssl'].map(
    (word) => `${forwardedPrefix}${word}`,
  ),
]
const withheld = [...overrideHeaders, ...clientAddressHeaders, ...requestFactHeaders, ...ofPrefixes]

/** How a file says that a header of the client does not reach the API, and which ones the program itself replaces. */
interface Snippet {
  readonly file: string
  /** The part of the file that is about requests to the API. */
  readonly part?: RegExp
  readonly drops: RegExp
  readonly ownWords?: readonly string[]
}

const caddy = /^\t\trequest_header -(\S+)/gm
const envoy = /- remove(?:_on_match)?: (?:\{ key_matcher: \{ prefix: )?([\w-]+)/g
const snippets: readonly Snippet[] = [
  { file: 'nginx/weir.conf', part: /location \/ \{[^}]*\}/, drops: /proxy_set_header (\S+)/g },
  { file: 'caddy/weir.caddyfile', drops: caddy },
  { file: 'caddy/weir-short.caddyfile', drops: caddy },
  { file: 'haproxy/haproxy.cfg', drops: /http-request del-header (\S+)(?: -m beg)?/g },
  { file: 'envoy/envoy.yaml', drops: envoy },
  { file: 'envoy/ratelimit.yaml', drops: envoy },
  {
    file: 'traefik/dynamic.yaml',
    drops: /^ {10}([\w-]+): ""|X-Weir-[\w-]+(?=[,\]])/gm,
    // Its entry point removes a client's and sets its own, and forwardAuth what authResponseHeaders lists.
    ownWords: ['for', 'host', 'proto', 'port', 'prefix', 'server', 'uri', 'method'].map(
      (word) => forwardedPrefix + word,
    ),
  },
]

/** What stands behind these are APIs of models, which read no such header; the gateways write the requests to them. */
const ofModels = ['envoy-ai-gateway', 'agentgateway']

test('every gateway with a configuration is among them', async () => {
  const entries = await readdir(resolve(import.meta.dirname, '../../docs/integrations'), { withFileTypes: true })
  const folders = entries.filter((one) => one.isDirectory()).map(({ name }) => name)
  expect([...new Set([...ofModels, ...snippets.map(({ file }) => file.split('/')[0])])].toSorted()).toEqual(
    folders.toSorted(),
  )
})

test.each(snippets)('$file withholds from the API what the proxy withholds from upstreams', async (snippet) => {
  const { file, part, drops, ownWords = [] } = snippet
  const text = await readFile(resolve(import.meta.dirname, '../../docs/integrations', file), 'utf8')
  const relevant = part === undefined ? text : (part.exec(text)?.[0] ?? '')
  const dropped = [...relevant.matchAll(drops)].map((match) => (match[1] ?? match[0]).toLowerCase())
  const isDropped = (name: string) =>
    dropped.includes(name) || dropped.some((one) => /[-*]$/.test(one) && name.startsWith(one.replace('*', '')))
  const traefik = file.startsWith('traefik') ? ['x-real-ip'] : []
  expect(withheld.filter((name) => !isDropped(name) && ![...ownWords, ...traefik].includes(name))).toEqual([])
})

test.each(['nginx/weir.conf', 'caddy/weir.caddyfile', 'caddy/weir-short.caddyfile', 'haproxy/weir.lua'])(
  "%s asks Weir without a client's trace, which would decide what is traced",
  async (file) => {
    const text = await readFile(resolve(import.meta.dirname, '../../docs/integrations', file), 'utf8')
    for (const name of ['traceparent', 'tracestate']) {
      expect(text).toMatch(new RegExp(`proxy_set_header ${name} "";|header_up -${name}|\\["${name}"\\] = true`, 'i'))
    }
  },
)
