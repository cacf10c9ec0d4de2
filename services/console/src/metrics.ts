import type { RestoreCounters } from '@weir/audit/quota-restorer.ts'
import { partsOf } from '@weir/redis/server-info.ts'
import { registerScraped } from '@weir/runtime/scraped-metrics.ts'
import type { Service } from '@weir/runtime/start-service.ts'
import type { LiveDecisions } from './decisions/live-decisions.ts'
import type { Semaphores } from './http/semaphore.ts'
import type { Monitor } from './status/open-monitor.ts'
import type { RedisFacts } from './status/redis-facts.ts'

/** What the console counts, and what it knows of the servers. */
interface Measured {
  readonly semaphores: Semaphores
  readonly live: Pick<LiveDecisions, 'taken'>
  readonly monitor: Monitor
  /** Undefined where the console has no Redis. */
  readonly restores: Readonly<RestoreCounters> | undefined
}

type Fields = ReadonlyMap<string, string>
type Cell = readonly [values: readonly string[], number: number]

/** Metrics that are a field of INFO. */
const plain = {
  weir_redis_uptime_seconds: ['uptime_in_seconds', 'Since Redis started'],
  weir_redis_memory_used_bytes: ['used_memory', 'Memory that Redis has allocated'],
  weir_redis_memory_max_bytes: ['maxmemory', 'What it may allocate; 0 for no bound of its own'],
  weir_redis_memory_rss_bytes: ['used_memory_rss', 'What its process has of the machine'],
  weir_redis_connected_clients: ['connected_clients', 'Connections of clients'],
  weir_redis_rejected_connections_total: ['rejected_connections', 'Connections refused because maxclients was reached'],
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

function registerRedis(register: Service['metrics'], known: () => readonly RedisFacts[]): void {
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
    registerScraped(register, { [name]: { help, labels, cells } })
  }
  registerScraped(register, {
    weir_redis_up: {
      help: 'Whether Redis answers the console within a second',
      labels,
      cells: () => known().map(({ server, role, fields }) => [[server, role], Number(fields !== undefined)]),
    },
    weir_redis_cpu_seconds_total: {
      help: 'CPU time of Redis',
      labels: [...labels, 'mode'],
      cells: cellsOf((fields) => [
        [['user'], Number(fields.get('used_cpu_user'))],
        [['system'], Number(fields.get('used_cpu_sys'))],
      ]),
    },
    weir_redis_network_bytes_total: {
      help: 'Bytes received and sent by Redis',
      labels: [...labels, 'direction'],
      cells: cellsOf((fields) => [
        [['in'], Number(fields.get('total_net_input_bytes'))],
        [['out'], Number(fields.get('total_net_output_bytes'))],
      ]),
    },
    weir_redis_persistence_ok: {
      help: 'Whether Redis last wrote its data successfully',
      labels,
      cells: cellsOf((fields) => [[[], Number(isPersistent(fields))]]),
    },
    weir_redis_replica_lag_bytes: {
      help: 'Bytes not yet confirmed by the slowest replica',
      labels,
      cells: cellsOf((fields) => replicaLag(fields).map((lag) => [[], lag])),
    },
    weir_redis_ping_seconds: {
      help: 'Round-trip time of an empty command from the console',
      labels,
      cells: cellsOf((_, pingSeconds) => [[[], pingSeconds]]),
    },
    weir_redis_command_seconds_total: {
      help: 'Server time spent in commands',
      labels: [...labels, 'command'],
      cells: cellsOf((fields) => commandTimes(fields).map(([command, { seconds }]) => [[command], seconds])),
    },
    weir_redis_command_calls_total: {
      help: 'Commands executed',
      labels: [...labels, 'command'],
      cells: cellsOf((fields) => commandTimes(fields).map(([command, { calls }]) => [[command], calls])),
    },
  })
}

/** Registers what the console counts, and what the servers say. docs/monitoring.md says what each metric is for. */
export function registerMetrics(register: Service['metrics'], { semaphores, live, monitor, restores }: Measured): void {
  registerScraped(register, {
    weir_topic_partitions: {
      help: 'Under-replicated partitions',
      labels: ['topic', 'state'],
      cells: () => monitor.topics().map(([topic, state, count]) => [[topic, state], count]),
    },
    weir_clickhouse_parts_max: {
      help: 'Active parts of the fullest partition of a table',
      label: 'table',
      readAll: () => monitor.clickhouse()?.partsMax ?? {},
    },
    weir_clickhouse_disk_free_ratio: {
      help: 'Free share of a ClickHouse disk',
      label: 'disk',
      readAll: () => monitor.clickhouse()?.diskFreeRatio ?? {},
    },
    weir_clickhouse_replica_delay_seconds: {
      help: 'Replication delay of this server, by replicated table',
      label: 'table',
      readAll: () => monitor.clickhouse()?.replicaDelaySeconds ?? {},
    },
    weir_usage_complete_timestamp_seconds: {
      help: 'Time until which all decisions are counted',
      label: 'rows',
      readAll: () => monitor.completeness(),
    },
  })
  registerScraped(register, {
    weir_places_taken: {
      help: 'Slots in use by queries, exports and live streams',
      label: 'kind',
      readAll: () => ({ questions: semaphores.questions.taken, exports: semaphores.exports.taken, live: live.taken }),
    },
  })
  if (restores === undefined) return
  registerRedis(register, monitor.redis)
  registerScraped(register, {
    weir_redis_losses_total: { help: 'Times Redis was found empty or restarted', read: () => restores.losses },
    weir_quota_restores_total: { help: 'Checks of all quota counts after a loss', read: () => restores.restores },
    weir_quotas_raised_total: { help: 'Quota counts raised to what ClickHouse shows', read: () => restores.raised },
  })
}
