import { chosen, type Page, panel, processVariables } from './panels.ts'

const gauge = (metric: string) => `weir_redis_${metric}{${chosen}}`
const rate = (metric: string, matcher = '') => `rate(weir_redis_${metric}{${chosen}${matcher}}[$__rate_interval])`
const scripts = ',command=~"eval.*"'

/** Redis as the ingress meets it and as it says of itself. */
export const redis: Page = {
  uid: 'weir-redis',
  title: 'Weir: Redis',
  description: 'Redis as the ingress meets it, and as it says of itself to the console.',
  variables: processVariables(),
  rows: {
    'As the ingress meets it': [
      panel('Round trip', 'Sent until answered. p99 above 12 ms is half of the deadline; p50 is the network.', 's', {
        p50: `histogram_quantile(0.5, sum by (le) (${rate('call_duration_seconds_bucket')}))`,
        p99: `histogram_quantile(0.99, sum by (le) (${rate('call_duration_seconds_bucket')}))`,
      }),
      panel('Decisions per call', 'Near 1 under load Redis has room; near 32 it is at its bound.', 'none', {
        mean: `sum(${rate('call_decisions_sum')}) / sum(${rate('call_decisions_count')})`,
      }),
      panel('Servers that do not answer', 'Not 0: decisions there follow `onUnavailable`.', 'none', {
        '{{instance}}': gauge('servers_gone'),
      }),
      panel('Errors by code', 'docs/operating.md says what each code means and what to do.', 'reqps', {
        '{{code}}': `sum by (code) (${rate('errors_total')})`,
      }),
      panel(
        'Breaker and late replies',
        'Steps while Redis runs: it is too slow at times. Refunds are what late replies gave back.',
        'none',
        {
          'breaker opened': `sum(increase(weir_redis_breaker_opened_total{${chosen}}[$__rate_interval]))`,
          'late replies': `sum(increase(weir_redis_late_replies_total{${chosen}}[$__rate_interval]))`,
          refunds: `sum(increase(weir_redis_late_refunds_total{${chosen}}[$__rate_interval]))`,
        },
      ),
      panel(
        'Script time',
        'Of a call, in Redis itself: some 20 µs. More is a slow machine, or a limit with a large log.',
        's',
        {
          '{{server}}': `sum by (instance, server) (${rate('command_seconds_total', scripts)}) / sum by (instance, server) (${rate('command_calls_total', scripts)})`,
        },
      ),
    ],
    Capacity: [
      panel('Memory', 'Used beside maxmemory, where there is one; rss far above used is fragmentation.', 'bytes', {
        'used {{server}}': gauge('memory_used_bytes'),
        'rss {{server}}': gauge('memory_rss_bytes'),
        'max {{server}}': gauge('memory_max_bytes'),
      }),
      panel('CPU', 'It decides on one core: 0.7 is near its end.', 'none', {
        '{{mode}} {{server}}': `sum by (instance, server, mode) (${rate('cpu_seconds_total')})`,
      }),
      panel('Commands', 'Calls a second; `other` is not Weir, or its housekeeping.', 'ops', {
        '{{command}} {{server}}': rate('command_calls_total'),
      }),
      panel('Connections', 'Rejected ones: `maxclients` is reached.', 'none', {
        'connected {{server}}': gauge('connected_clients'),
        'rejected {{server}}': `increase(weir_redis_rejected_connections_total{${chosen}}[$__rate_interval])`,
      }),
      panel('Network', 'Bytes a second in and out; at the end of the link everything waits.', 'Bps', {
        '{{direction}} {{server}}': rate('network_bytes_total'),
      }),
      panel(
        'Hits',
        'Share of look-ups that found a key. Low is normal: a new window has no count yet; a sudden fall is lost data.',
        'percentunit',
        {
          '{{server}}': `${rate('keyspace_hits_total')} / (${rate('keyspace_hits_total')} + ${rate('keyspace_misses_total')})`,
        },
      ),
    ],
    'Does it keep what it counts': [
      panel('Evicted keys', 'Any: limits do not hold.', 'none', {
        '{{server}}': `increase(weir_redis_evicted_keys_total{${chosen}}[$__rate_interval])`,
      }),
      panel('Persistence', '0: it could not write its data, and a restart would lose counts.', 'none', {
        '{{server}}': gauge('persistence_ok'),
      }),
      panel(
        'Losses and restored quotas',
        'A step is a Redis that came back without its counts, and how many quotas were raised again.',
        'none',
        {
          losses: `increase(weir_redis_losses_total{${chosen}}[$__rate_interval])`,
          'quotas raised': `increase(weir_quotas_raised_total{${chosen}}[$__rate_interval])`,
        },
      ),
      panel('Replicas', 'Fewer than there should be: a failover has nowhere to go.', 'none', {
        '{{server}}': gauge('replicas_connected'),
      }),
      panel('Replication lag', 'What a failover would forget. No line: there is no replica.', 'bytes', {
        '{{server}}': gauge('replica_lag_bytes'),
      }),
      panel('Ping and uptime', 'The ping of the console shows the way there; an uptime that falls is a restart.', 's', {
        'ping {{server}}': gauge('ping_seconds'),
        'uptime {{server}}': gauge('uptime_seconds'),
      }),
    ],
  },
}
