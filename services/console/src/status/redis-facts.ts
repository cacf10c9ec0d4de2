import type { QuotaServers } from '@weir/redis/quota-counts.ts'
import { readServerInfo, type ServerInfo } from '@weir/redis/server-info.ts'
import { type Polled, startPolling } from '@weir/runtime/start-polling.ts'
import type { Service } from '@weir/runtime/start-service.ts'

/** An INFO costs Redis a fraction of a millisecond. */
const everyMs = 5_000
/** A server answers within a second, or counts as down. */
const deadlineMs = 2_000
/** Masters of a Cluster that are shown; far more than most have. */
const serversMax = 64

/** A server's info with the role that it had last: it is a label, and one that is down says none. */
export type RedisFacts = ServerInfo & { readonly role: string }

/** Asks the servers that hold the counts how they are. */
export function pollRedis(servers: Pick<QuotaServers, 'all'>, service: Service): Polled<readonly RedisFacts[]> {
  let roles = new Map<string, string>()
  const ask = async (): Promise<readonly RedisFacts[]> => {
    const found = await Promise.all(servers.all().slice(0, serversMax).map(readServerInfo))
    const known = found.map((one) => {
      return { ...one, role: one.fields?.get('role') ?? roles.get(one.server) ?? 'unknown' }
    })
    roles = new Map(known.map(({ server, role }) => [server, role]))
    return known
  }
  return startPolling('redis servers', { everyMs, deadlineMs, ask }, service)
}
