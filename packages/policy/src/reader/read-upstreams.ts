import type { Upstream } from '../policy.ts'
import { nameRule, parseDurationMs, parseHost, parseName, parseOrigin } from '../policy-values.ts'
import type { Field, Place, PolicyReader } from './policy-reader.ts'

/** An upstream that is silent for longer is taken for gone. */
const upstreamTimeoutMs = 30_000
/** Shorter, and a busy upstream counts as gone; longer, and callers have gone themselves. */
const upstreamTimeoutMsMin = 100
const upstreamTimeoutMsMax = 3_600_000

/** The upstreams by name; undefined stands for one that is there but wrong. No host belongs to two. */
export function readUpstreams(reader: PolicyReader, place: Place): Map<string, Upstream | undefined> {
  const upstreams = new Map<string, Upstream | undefined>()
  const owners = new Map<string, string>()
  for (const [name, field] of reader.map(place, 'a map of upstreams by name') ?? []) {
    if (parseName(name) === undefined) reader.problemAtKey(field, `the name of an upstream must be ${nameRule}`)
    const fields = reader.fields(field, 'an upstream', ['url', 'hosts', 'timeout'], ['url'])
    const urlAt = fields?.get('url')
    const what =
      'an http or https URL of scheme, host and port only, without credentials, such as http://127.0.0.1:9000'
    const url = urlAt === undefined ? undefined : reader.secretText(urlAt, what, parseOrigin)
    const hosts = fields === undefined ? undefined : readHosts(reader, field, fields.get('hosts'))
    for (const { host, at } of hosts ?? []) {
      const owner = owners.get(host)
      if (owner === undefined) owners.set(host, name)
      else reader.problem(at, hostTaken(host, owner, fields?.has('hosts') ?? false))
    }
    const timeoutAt = fields?.get('timeout')
    const timeoutMs = timeoutAt === undefined ? upstreamTimeoutMs : readTimeout(reader, timeoutAt)
    const complete = url !== undefined && hosts !== undefined && timeoutMs !== undefined
    upstreams.set(name, complete ? { name, url, hosts: hosts.map(({ host }) => host), timeoutMs } : undefined)
  }
  return upstreams
}

function readTimeout(reader: PolicyReader, field: Field): number | undefined {
  const ms = reader.text(field, 'a duration such as 10s or 2m', parseDurationMs)
  if (ms === undefined || (ms >= upstreamTimeoutMsMin && ms <= upstreamTimeoutMsMax)) return ms
  return reader.problem(field, `must be from ${upstreamTimeoutMsMin}ms to ${upstreamTimeoutMsMax / 3_600_000}h`)
}

function hostTaken(host: string, owner: string, written: boolean): string {
  if (written) return `the host ${host} is the upstream ${owner}'s already`
  return `needs \`hosts\`: without, it takes every host, as the upstream ${owner} does ([] for routes only)`
}

function readHosts(reader: PolicyReader, upstream: Place, field: Field | undefined) {
  if (field === undefined) return [{ host: '*', at: { ...upstream, valueOffset: upstream.keyOffset } }]
  const hosts: { readonly host: string; readonly at: Place }[] = []
  for (const at of reader.list(field, 'a list of host names such as [api.example.com] or ["*"]') ?? []) {
    const host = reader.text(at, 'a host name without a port, or "*"', parseHost)
    if (host !== undefined) hosts.push({ host, at })
  }
  return hosts
}
