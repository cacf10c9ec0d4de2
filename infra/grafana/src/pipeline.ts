import { chosen, type Page, panel, processVariables } from './panels.ts'

const perSecond = (metric: string, by = '') => `sum${by} (rate(${metric}{${chosen}}[$__rate_interval]))`
const quantile = (q: number, metric: string, by = '') =>
  `histogram_quantile(${q}, sum by (${by}le) (rate(${metric}_bucket{${chosen}}[$__rate_interval])))`
const increase = (metric: string) => `sum(increase(${metric}{${chosen}}[$__rate_interval]))`

/** From the record on disk to the row and the webhook: where does it stop? */
export const pipeline: Page = {
  uid: 'weir-pipeline',
  title: 'Weir: pipeline',
  description: 'From the record on disk to the row in ClickHouse and the webhook: where does it stop?',
  variables: processVariables(),
  rows: {
    Flow: [
      panel(
        'Records',
        'The lines lie on each other. The first that is below the one before it is where records wait.',
        'reqps',
        {
          appended: perSecond('weir_journal_records_appended_total'),
          sent: perSecond('weir_journal_records_sent_total'),
          inserted: perSecond('weir_insert_rows_sum'),
          'watched by alerting': perSecond('weir_decisions_watched_total'),
        },
      ),
      panel('Freshness', 'How old the newest complete sum is: what customers see of their usage.', 's', {
        '{{rows}}': `time() - weir_usage_complete_timestamp_seconds{${chosen}}`,
      }),
      panel(
        'Lag by group',
        'How far each reader of Kafka is behind. 900 s is too late for alerts of a period that ended.',
        's',
        { '{{group}}': `max by (group) (weir_consumer_lag_seconds{${chosen}})` },
      ),
      panel('Records waiting in Kafka', 'The same in records: what is to be worked off.', 'none', {
        '{{group}} {{topic}}': `sum by (group, topic) (weir_consumer_lag_records{${chosen}})`,
      }),
      panel(
        'Doubtful records',
        'Duplicates after a restart are normal; losses, dead letters and retries are not.',
        'none',
        {
          duplicates: increase('weir_duplicate_records_total'),
          'dead letters': increase('weir_dead_letters_total'),
          'insert retries': increase('weir_insert_retries_total'),
          'blocks recovered': increase('weir_block_recoveries_total'),
        },
      ),
      panel(
        'Stopped partitions, lost members',
        'Stopped: /readyz says why, and a person decides. Members lost often: sessions are too short for the load.',
        'none',
        {
          'stopped {{group}}': `sum by (group) (weir_consumer_stopped_partitions{${chosen}})`,
          'members lost {{group}}': `sum by (group) (increase(weir_consumer_members_lost_total{${chosen}}[$__rate_interval]))`,
        },
      ),
    ],
    Journal: [
      panel('Oldest record', 'Above a minute Kafka does not take records.', 's', {
        '{{instance}}': `weir_journal_oldest_waiting_seconds{${chosen}}`,
      }),
      panel('Fill', 'From 80% on denials are not recorded, at 100% requests are refused.', 'percentunit', {
        '{{instance}}': `weir_journal_bytes{${chosen}} / weir_journal_max_bytes{${chosen}}`,
      }),
      panel(
        'Time until full',
        'At the rate of the last minutes: how long Kafka may still be away. No line: it does not grow.',
        's',
        {
          '{{instance}}': `(weir_journal_max_bytes{${chosen}} - weir_journal_bytes{${chosen}}) / (deriv(weir_journal_bytes{${chosen}}[10m]) > 0)`,
        },
      ),
      panel('Writes to disk', 'p99 above 20 ms: the disk is too busy for a gateway.', 's', {
        p50: quantile(0.5, 'weir_journal_write_duration_seconds'),
        p99: quantile(0.99, 'weir_journal_write_duration_seconds'),
      }),
      panel('Append until acknowledged', 'What Kafka takes for a batch.', 's', {
        p50: quantile(0.5, 'weir_journal_publish_duration_seconds'),
        p99: quantile(0.99, 'weir_journal_publish_duration_seconds'),
      }),
      panel(
        'Refusals and failures',
        'Records that the journal or Kafka did not take: the first are 503 to customers.',
        'none',
        {
          'records refused': increase('weir_journal_records_refused_total'),
          'writes failed': increase('weir_journal_failed_writes_total'),
          'batches sent again': increase('weir_journal_publish_failures_total'),
          'journals of dead processes': `sum(weir_journals_adopted{${chosen}})`,
        },
      ),
    ],
    ClickHouse: [
      panel('Time of an insert', 'Rising with the rows: more per block. Rising alone: ClickHouse is busy.', 's', {
        'p50 {{topic}}': quantile(0.5, 'weir_insert_duration_seconds', 'topic, '),
        'p99 {{topic}}': quantile(0.99, 'weir_insert_duration_seconds', 'topic, '),
      }),
      panel('Rows per insert', 'Few rows per insert cost ClickHouse merges.', 'none', {
        '{{topic}}': `${perSecond('weir_insert_rows_sum', ' by (topic)')} / ${perSecond('weir_insert_rows_count', ' by (topic)')}`,
      }),
      panel('Parts and disks', 'Parts from 1,000 on slow inserts down.', 'none', {
        'parts {{table}}': `topk(5, weir_clickhouse_parts_max{${chosen}})`,
      }),
      panel('Free disk', 'Below 5% inserts will stop.', 'percentunit', {
        '{{disk}}': `weir_clickhouse_disk_free_ratio{${chosen}}`,
      }),
      panel("Kafka's partitions", 'Not 0: too few copies; `under_min_isr` and `leaderless` take no records.', 'none', {
        '{{state}} {{topic}}': `weir_topic_partitions{${chosen}}`,
      }),
    ],
    Alerts: [
      panel(
        'Delay of alerts',
        'Decision until the alert is published, and publication until an endpoint took it.',
        's',
        {
          'p99 raised': quantile(0.99, 'weir_alert_delay_seconds'),
          'p99 delivered {{type}}': quantile(0.99, 'weir_delivery_delay_seconds', 'type, '),
        },
      ),
      panel('Alerts raised', 'By type. A burst is a limit that many reached, or the start of a month.', 'none', {
        '{{type}}': `sum by (type) (increase(weir_alerts_raised_total{${chosen}}[$__rate_interval]))`,
        'not raised, {{cause}}': `sum by (cause) (increase(weir_alerts_suppressed_total{${chosen}}[$__rate_interval]))`,
      }),
      panel('Deliveries', '`failed` is tried again, `given_up` is not.', 'none', {
        '{{type}} {{result}}': `sum by (type, result) (increase(weir_deliveries_total{${chosen}}[$__rate_interval]))`,
      }),
      panel('Queue of deliveries', '`ready` should be near 0; `delayed` are retries of endpoints that fail.', 'none', {
        '{{state}}': `sum by (state) (weir_deliveries_waiting{${chosen}})`,
        'circuits open': `sum(weir_endpoint_circuits_open{${chosen}})`,
      }),
      panel('Oldest delivery that is due', 'Above a minute nobody works at the queue.', 's', {
        '{{instance}}': `weir_deliveries_oldest_ready_seconds{${chosen}}`,
      }),
      panel('Time of an attempt, p99', 'Endpoints that answer slowly hold up the others.', 's', {
        '{{type}}': quantile(0.99, 'weir_delivery_attempt_duration_seconds', 'type, '),
      }),
    ],
  },
}
