import { type Page, sqlPanel, sqlTable, usageVariables } from './panels.ts'

const inTime = '$__timeFilter(ts)'

/** Who used what: what metrics may not know, because subjects are no labels. */
export const usage: Page = {
  uid: 'weir-usage',
  title: 'Weir: usage',
  description:
    'Who used what, by ClickHouse: metrics have no subjects. Needs the plugin grafana-clickhouse-datasource, with the database of Weir as its default.',
  variables: usageVariables(),
  rows: {
    Subjects: [
      sqlPanel(
        'Units of the ten largest',
        'Whose load rises: quarter hours of units, of those who used most.',
        'none',
        `SELECT ts AS time, subject, sum(cost) AS units FROM usage_15m WHERE ${inTime} AND outcome = 'allow' AND subject IN (SELECT subject FROM usage_15m WHERE ${inTime} AND outcome = 'allow' GROUP BY subject ORDER BY sum(cost) DESC LIMIT 10) GROUP BY time, subject ORDER BY time`,
      ),
      sqlTable(
        'Requests and units by subject',
        'Who is the load, and how much of it is refused.',
        `SELECT subject, sum(count) AS requests, sumIf(count, outcome = 'deny') AS denied, sumIf(cost, outcome = 'allow') AS units FROM usage_15m WHERE ${inTime} GROUP BY subject ORDER BY requests DESC LIMIT 50`,
      ),
      sqlPanel(
        'The chosen subject by day',
        'Units of the subject that is typed above, by day of UTC: what to say when a customer asks.',
        'none',
        `SELECT toStartOfDay(u.ts) AS time, outcome, sum(u.cost) AS units FROM usage_15m AS u WHERE $__timeFilter(u.ts) AND subject = \${subject:sqlstring} GROUP BY time, outcome ORDER BY time`,
      ),
    ],
    Limits: [
      sqlTable(
        'Nearest to their limits',
        'Who will be refused soon: the largest part of a limit that was in use at once.',
        `SELECT subject, limit, max(share) AS largest_share, sum(count) AS asked, sum(refused) AS denied FROM limits_15m WHERE ${inTime} GROUP BY subject, limit ORDER BY largest_share DESC LIMIT 20`,
        { largest_share: 'percentunit' },
      ),
      sqlTable(
        'Refused by subject and limit',
        'Who needs a larger plan, or is too fast.',
        `SELECT subject, limit, sum(refused) AS denied FROM limits_15m WHERE ${inTime} GROUP BY subject, limit HAVING denied > 0 ORDER BY denied DESC LIMIT 20`,
      ),
      sqlTable(
        'Addresses refused most',
        'Whom to keep out before Weir. Addresses are recorded where a limit counts by `ip`.',
        `SELECT ip, reason, sum(count) AS denied FROM decisions WHERE $__timeFilter_ms(ts) AND outcome = 'deny' AND ip != '' GROUP BY ip, reason ORDER BY denied DESC LIMIT 20`,
      ),
    ],
    'Upstreams and alerts': [
      sqlTable(
        'Upstream errors and times by route',
        'Which route of your API is slow or fails.',
        `SELECT route, method, sum(count) AS answers, sum(status_5xx) AS errors, sum(broken) AS cut_off, quantilesTDigestMerge(0.5, 0.9, 0.99)(duration_ms)[3] AS p99 FROM outcomes_15m WHERE ${inTime} GROUP BY route, method ORDER BY answers DESC LIMIT 50`,
        { p99: 'ms' },
      ),
      sqlTable(
        'Alerts raised',
        'Who was alerted of what; `late` reached nobody.',
        'SELECT time, type, subject, limit, percent, state FROM alerts FINAL WHERE $__timeFilter_ms(time) ORDER BY time DESC LIMIT 100',
        { percent: 'percent' },
      ),
      sqlTable(
        'Deliveries by endpoint',
        'Which endpoint fails, and how slowly it answers.',
        "SELECT endpoint, countIf(outcome = 'delivered') AS delivered, countIf(outcome = 'failed') AS failed, countIf(outcome = 'given_up') AS given_up, quantileIf(0.99)(ms, attempt > 0) AS p99 FROM deliveries FINAL WHERE $__timeFilter_ms(at) GROUP BY endpoint ORDER BY failed DESC",
        { p99: 'ms' },
      ),
    ],
  },
}
