import { chosen, type Page, panel, processVariables } from './panels.ts'

const quantile = (q: number) =>
  `histogram_quantile(${q}, sum by (entry_point, le) (rate(weir_decision_duration_seconds_bucket{${chosen}}[$__rate_interval])))`

/** Is Weir well, and are its objectives met? The first look when an alert comes. */
export const overview: Page = {
  uid: 'weir-overview',
  title: 'Weir: overview',
  description: 'Is Weir well, and are its objectives met? The first look when an alert comes.',
  variables: processVariables(),
  rows: {
    Health: [
      panel(
        'Ready',
        '0: /readyz of that process says what is missing. A line that ends: the process is gone.',
        'none',
        { '{{job}} {{instance}}': `weir_ready{${chosen}}` },
      ),
      panel(
        'Uptime',
        'A line that falls to 0 is a restart; several together were somebody, one alone was a crash.',
        's',
        { '{{job}} {{instance}}': `time() - process_start_time_seconds{${chosen},job=~"weir-.*"}` },
      ),
      panel('Alerts', 'What fires, with its severity; docs/runbook.md has a heading for each.', 'none', {
        '{{alertname}} {{severity}}': 'count by (alertname, severity) (ALERTS{alertstate="firing"})',
      }),
    ],
    Decisions: [
      panel('Decisions', 'The load, and how much of it is denied.', 'reqps', {
        '{{outcome}}': `sum by (outcome) (rate(weir_decisions_total{${chosen}}[$__rate_interval]))`,
      }),
      panel(
        'Denied share by reason',
        'Why: `limit` is what limits are for; `unavailable` is Redis, `journal_full` is Kafka or the disk.',
        'percentunit',
        {
          '{{reason}}': `sum by (reason) (rate(weir_decisions_total{${chosen},outcome="deny"}[$__rate_interval])) / on () group_left () sum(rate(weir_decisions_total{${chosen}}[$__rate_interval]))`,
        },
      ),
      panel(
        'Time of a decision',
        "What Weir adds to a request, without the upstream's time. Above 10 ms it misses the objective `quick`.",
        's',
        {
          'p50 {{entry_point}}': quantile(0.5),
          'p99 {{entry_point}}': quantile(0.99),
          'p99.9 {{entry_point}}': quantile(0.999),
        },
      ),
      panel('Answers by code', '5xx are upstreams or Weir (503 is its own), 499 are clients that left.', 'reqps', {
        '{{code}}': `sum by (code) (rate(weir_http_request_duration_seconds_count{${chosen}}[$__rate_interval]))`,
      }),
      panel(
        'Whole request and upstream, p99',
        'Who is slow: lines that rise together are the upstream, the first alone is Weir or waiting for capacity.',
        's',
        {
          proxy: `histogram_quantile(0.99, sum by (le) (rate(weir_http_request_duration_seconds_bucket{${chosen},entry_point="proxy"}[$__rate_interval])))`,
          'upstream {{upstream}}': `histogram_quantile(0.99, sum by (upstream, le) (rate(weir_upstream_duration_seconds_bucket{${chosen}}[$__rate_interval])))`,
        },
      ),
    ],
    Objectives: [
      panel(
        'Budget burned in three days',
        'Share of the budget of 30 days. A tenth is as planned; an objective that burns a third has no month.',
        'percentunit',
        { '{{slo}}': 'weir:slo_errors:ratio_rate3d / weir:slo_budget:ratio / 10' },
      ),
      panel('Burn rate of an hour', 'How many times faster than planned each budget burns; 14.4 pages.', 'none', {
        '{{slo}}': 'weir:slo_errors:ratio_rate1h / weir:slo_budget:ratio',
      }),
      panel(
        'Not counted',
        'The objective without a budget: each step is something answered that usage does not show.',
        'none',
        {
          lost: `sum(increase(weir_lost_records_total{${chosen}}[$__rate_interval]))`,
          expired: `sum(increase(weir_expired_records_total{${chosen}}[$__rate_interval]))`,
          gaps: `sum(increase(weir_journal_gaps_total{${chosen}}[$__rate_interval]))`,
          'lost corrections': `sum(increase(weir_corrections_lost_total{${chosen}}[$__rate_interval]))`,
          quarantined: `sum(increase(weir_journal_records_quarantined_total{${chosen}}[$__rate_interval]))`,
        },
      ),
    ],
    Processes: [
      panel('CPU', 'Cores by process; an ingress at 0.8 needs another beside it.', 'none', {
        '{{job}} {{instance}}': `rate(process_cpu_seconds_total{${chosen},job=~"weir-.*"}[$__rate_interval])`,
      }),
      panel('Memory', 'A line that only rises is a leak.', 'bytes', {
        '{{job}} {{instance}}': `process_resident_memory_bytes{${chosen},job=~"weir-.*"}`,
      }),
      panel(
        'Event loop, p99',
        'It includes the 0.1 s between samples. More than 0.2 s delays every request of that process.',
        's',
        { '{{job}} {{instance}}': `nodejs_eventloop_lag_p99_seconds{${chosen},job=~"weir-.*"}` },
      ),
    ],
  },
}
