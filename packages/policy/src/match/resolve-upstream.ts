import type { Policy, Route, Upstream } from '../policy.ts'

/**
 * Gives where a request goes: the route's own upstream, else that of the host, else that of every host (`*`).
 * `host` is the Host header as received; its port and case do not count.
 */
export function createUpstreamResolver(
  policy: Pick<Policy, 'upstreams'>,
): (host: string, route: Route | undefined) => Upstream | undefined {
  const byHost = new Map<string, Upstream>()
  for (const upstream of policy.upstreams.values()) for (const host of upstream.hosts) byHost.set(host, upstream)
  const anyHost = byHost.get('*')
  const hostsMatter = byHost.size > (anyHost === undefined ? 0 : 1)
  return function resolveUpstream(host, route) {
    const name = route?.upstream
    if (name !== undefined) return policy.upstreams.get(name)
    return hostsMatter ? (byHost.get(hostName(host)) ?? anyHost) : anyHost
  }
}

/** Without port and final dot, lower case; the brackets of an IPv6 address stay. */
function hostName(host: string): string {
  const lower = host.toLowerCase()
  const colon = lower.lastIndexOf(':')
  const name = colon > lower.lastIndexOf(']') ? lower.slice(0, colon) : lower
  return name.endsWith('.') ? name.slice(0, -1) : name
}
