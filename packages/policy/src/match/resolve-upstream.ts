import type { Policy, Route, Upstream } from '../policy.ts'

/** DNS has no longer names; a header may, with thousands of dots. */
const hostLengthMax = 253

/**
 * Gives where a request goes: the route's own upstream, else that of the host, else that of the longest `*.` that fits
 * it (which stands for one label or more), else that of every host (`*`).
 * `host` is the Host header as received; its port and case do not count.
 */
export function createUpstreamResolver(
  policy: Pick<Policy, 'upstreams'>,
): (host: string, route: Route | undefined) => Upstream | undefined {
  const byHost = new Map<string, Upstream>()
  for (const upstream of policy.upstreams.values()) for (const host of upstream.hosts) byHost.set(host, upstream)
  const anyHost = byHost.get('*')
  const hostsMatter = byHost.size > (anyHost === undefined ? 0 : 1)
  const hasWildcards = [...byHost.keys()].some((host) => host.startsWith('*.'))
  const upstreamOf = (name: string): Upstream | undefined => {
    const exact = byHost.get(name)
    if (exact !== undefined || !hasWildcards || name.length > hostLengthMax) return exact
    for (let dot = name.indexOf('.', 1); dot !== -1; dot = name.indexOf('.', dot + 1)) {
      const found = byHost.get(`*${name.slice(dot)}`)
      if (found !== undefined) return found
    }
    return undefined
  }
  return function resolveUpstream(host, route) {
    const name = route?.upstream
    if (name !== undefined) return policy.upstreams.get(name)
    return hostsMatter ? (upstreamOf(hostName(host)) ?? anyHost) : anyHost
  }
}

/** Without port and final dot, lower case; the brackets of an IPv6 address stay. */
function hostName(host: string): string {
  const lower = host.toLowerCase()
  const colon = lower.lastIndexOf(':')
  const name = colon > lower.lastIndexOf(']') ? lower.slice(0, colon) : lower
  return name.endsWith('.') ? name.slice(0, -1) : name
}
