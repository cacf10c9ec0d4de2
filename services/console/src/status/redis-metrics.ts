import type { QuotaServers } from '@weir/redis/quota-counts.ts'
import { partsOf, readServerInfo, type ServerInfo } from '@weir/redis/server-info.ts'
import { registerScraped } from '@weir/runtime/scraped-metrics.ts'
import { startPolling } from '@weir/runtime/start-polling.ts'
import type { Service } from '@weir/runtime/start-service.ts'

/** An INFO costs Redis a fraction of a millisecond. */
const everyMs = 5_000
/** A server answers within a second, or counts as down. */
const deadlineMs = 2_000
/** Masters of a Cluster that are shown; far more than most have. */
const serversMax = 64

type Fields = ReadonlyMap<string, string>
type Cell = readonly [values: readonly string[], number: number]

/** A server's info with the role that it had last: it is a label, and one that is down says none. */
type Known = ServerInfo & { readonly role: string }

/** Metrics that are a field of INFO. */
const plain = {
  weir_redis_uptime_seconds: ['uptime_in_seconds', 'Since Redis started'],
  weir_redis_memory_used_bytes: ['used_memory', 'Memory that Redis has allocated'],
  weir_redis_memory_max_bytes: ['maxmemory', 'What it may allocate; 0 for no bound of its own'],
  weir_redis_memory_rss_bytes: ['used_memory_rss', 'What its process has of the machine'],
  weir_redis_connected_clients: ['connected_clients', 'Connections of clients'],
  weir_redis_rejected_connections_total: ['rejected_connections', 'Connections refused because of maxclients'],
  weir_redis_evicted_keys_total: ['evicted_keys', 'Keys evicted because of maxmemory'],
  weir_redis_keyspace_hits_total: ['keyspace_hits', 'Look-ups that found a key'],
  weir_redis_keyspace_misses_total: ['keyspace_misses', 'Look-ups that found none'],
  weir_redis_replicas_connected: ['connected_slaves', 'Replicas of this master that are connected'],
} as const

/** 0 when Redis could not write what it should: the next restart would lose counts. */
const isPersistent = (fields: Fields) =>
  ['rdb_last_bgsave_status', 'aof_last_bgrewrite_status', 'aof_last_write_status'].every(
    (field) => (fields.get(field) ?? 'ok') === 'ok',
  )

/** Of the replica that is furthest behind; none without replicas. */
function replicaLag(fields: Fields): number[] {
  const at = Number(fields.get('master_repl_offset'))
  const lags = [...fields].flatMap(([name, entry]) =>
    /^slave\d+$/.test(name) ? [Math.max(0, at - Number(partsOf(entry).offset))] : [],
  )
  return lags.length === 0 ? [] : [Math.max(...lags)]
}

/** Calls and seconds of scripts, which are Weir's decisions, and of everything else. */
function commandTimes(fields: Fields) {
  const times = { evalsha: { calls: 0, seconds: 0 }, eval: { calls: 0, seconds: 0 }, other: { calls: 0, seconds: 0 } }
  for (const [name, entry] of fields) {
    if (!name.startsWith('cmdstat_')) continue
    const command = name.slice('cmdstat_'.length)
    const time = times[command === 'evalsha' || command === 'eval' ? command : 'other']
    const { calls, usec } = partsOf(entry)
    time.calls += Number(calls)
    time.seconds += Number(usec) / 1_000_000
  }
  return Object.entries(times)
}

function registerAll({ metrics }: Service, known: () => readonly Known[]): void {
  const answered = () => known().flatMap(({ fields, ...rest }) => (fields === undefined ? [] : [{ ...rest, fields }]))
  /** Cells of all servers that answered, each of some `more` labels. */
  const cellsOf = (numbers: (fields: Fields, pingSeconds: number) => readonly Cell[]) => (): Cell[] =>
    answered().flatMap(({ server, role, fields, pingSeconds }) =>
      numbers(fields, pingSeconds)
        .filter(([, number]) => Number.isFinite(number))
        .map(([more, number]) => [[server, role, ...more], number]),
    )
  const labels = ['server', 'role']
  for (const [name, [field, help]] of Object.entries(plain)) {
    const cells = cellsOf((fields) => [[[], Number(fields.get(field) ?? Number.NaN)]])
    registerScraped(metrics, { [name]: { help, labels, cells } })
  }
  registerScraped(metrics, {
    weir_redis_up: {
      help: 'Whether Redis answers the console within a second',
      labels,
      cells: () => known().map(({ server, role, fields }) => [[server, role], Number(fields !== undefined)]),
    },
    weir_redis_cpu_seconds_total: {
      help: 'Processor time of Redis',
      labels: [...labels, 'mode'],
      cells: cellsOf((fields) => [
        [['user'], Number(fields.get('used_cpu_user'))],
        [['system'], Number(fields.get('used_cpu_sys'))],
      ]),
    },
    weir_redis_network_bytes_total: {
      help: 'Bytes that Redis received and sent',
      labels: [...labels, 'direction'],
      cells: cellsOf((fields) => [
        [['in'], Number(fields.get('total_net_input_bytes'))],
        [['out'], Number(fields.get('total_net_output_bytes'))],
      ]),
    },
    weir_redis_persistence_ok: {
      help: 'Whether Redis could write its data the last time',
      labels,
      cells: cellsOf((fields) => [[[], Number(isPersistent(fields))]]),
    },
    weir_redis_replica_lag_bytes: {
      help: 'What the replica furthest behind has not confirmed',
      labels,
      cells: cellsOf((fields) => replicaLag(fields).map((lag) => [[], lag])),
    },
    weir_redis_ping_seconds: {
      help: 'How long a command without work took from the console, there and back',
      labels,
      cells: cellsOf((_, pingSeconds) => [[[], pingSeconds]]),
    },
    weir_redis_command_seconds_total: {
      help: 'Time in commands, on the server',
      labels: [...labels, 'command'],
      cells: cellsOf((fields) => commandTimes(fields).map(([command, { seconds }]) => [[command], seconds])),
    },
    weir_redis_command_calls_total: {
      help: 'Commands that took it',
      labels: [...labels, 'command'],
      cells: cellsOf((fields) => commandTimes(fields).map(([command, { calls }]) => [[command], calls])),
    },
  })
}

/** Asks the servers that hold the counts how they are, and registers what they say. */
export function openRedisMetrics(servers: Pick<QuotaServers, 'all'>, service: Service): void {
  let roles = new Map<string, string>()
  const ask = async (): Promise<readonly Known[]> => {
    const found = await Promise.all(servers.all().slice(0, serversMax).map(readServerInfo))
    const known = found.map((one) => {
      return { ...one, role: one.fields?.get('role') ?? roles.get(one.server) ?? 'unknown' }
    })
    roles = new Map(known.map(({ server, role }) => [server, role]))
    return known
  }
  const polled = startPolling('redis servers', { everyMs, deadlineMs, ask }, service)
  registerAll(service, () => polled.answer ?? [])
}
