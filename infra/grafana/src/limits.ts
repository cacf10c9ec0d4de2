import { chosen, type Page, panel, processVariables } from './panels.ts'

const rate = (metric: string, by: string, matcher = '') =>
  `sum by (${by}) (rate(${metric}{${chosen}${matcher}}[$__rate_interval]))`
const utilization = 'weir_limit_utilization_ratio'
/** The share of decisions after which more than that part of a limit was in use. Prometheus 3 writes "1.0" for "1". */
const above = (bound: string) =>
  `topk(10, 1 - ${rate(`${utilization}_bucket`, 'limit', `,le=~"${bound}"`)} / (${rate(`${utilization}_count`, 'limit')} > 0))`

/** Which limits refuse, whom, and what was done about it. */
export const limits: Page = {
  uid: 'weir-limits',
  title: 'Weir: limits',
  description:
    'Which limits refuse, how near their callers come, and where decisions are made. Single subjects are in the dashboard of usage.',
  variables: processVariables(),
  rows: {
    Limits: [
      panel('Refusals by limit', 'The limit that customers meet most: too small, or somebody is too fast.', 'reqps', {
        '{{limit}}': `topk(10, ${rate('weir_limit_decisions_total', 'limit', ',outcome="deny"')})`,
      }),
      panel(
        'Above 80% of a limit',
        'Share of decisions after which a limit was used to more than 80%: who will be refused soon.',
        'percentunit',
        { '{{limit}}': above('0.8') },
      ),
      panel(
        'At the limit',
        'Share of decisions after which more than 90% was in use. High without refusals: sized just right.',
        'percentunit',
        { '{{limit}}': above('0.9') },
      ),
      panel('Decisions by limit', 'How often each limit is asked; one that is never asked matches nothing.', 'reqps', {
        '{{limit}}': `topk(10, ${rate('weir_limit_decisions_total', 'limit')})`,
      }),
      panel(
        'Actions beyond a limit',
        'What was done with requests beyond a limit. `delay` without `deny`: the limit smooths, as it should.',
        'reqps',
        { '{{action}}': rate('weir_limit_exceeded_actions_total', 'action') },
      ),
      panel('Requests waiting', 'Near 10,000, or the `queue` of a limit, further requests are refused.', 'none', {
        '{{instance}}': `weir_requests_waiting{${chosen}}`,
      }),
    ],
    'Plans and routes': [
      panel('Denied share by plan', 'A plan whose customers are denied often is too small for them.', 'percentunit', {
        '{{plan}}': `${rate('weir_plan_decisions_total', 'plan', ',outcome="deny"')} / (${rate('weir_plan_decisions_total', 'plan')} > 0)`,
      }),
      panel('Decisions by route', 'Where the load goes.', 'reqps', {
        '{{route}}': `topk(10, ${rate('weir_route_decisions_total', 'route')})`,
      }),
      panel('Refusals by route', 'What customers are refused.', 'reqps', {
        '{{route}}': `topk(10, ${rate('weir_route_decisions_total', 'route', ',outcome="deny"')})`,
      }),
    ],
    'How decisions are made': [
      panel(
        'Decisions by source',
        '`local` and `unavailable` are decided without the shared count; `deny_cache` costs Redis nothing.',
        'reqps',
        { '{{source}}': rate('weir_decision_source_total', 'source') },
      ),
      panel(
        'Leased units and their use',
        'Units taken ahead beside decisions out of them: far apart, leases are too large.',
        'none',
        {
          'units taken': `sum(rate(weir_lease_units_total{${chosen}}[$__rate_interval]))`,
          'decisions from them': `sum(rate(weir_decision_source_total{${chosen},source="lease"}[$__rate_interval]))`,
        },
      ),
      panel(
        'Wrong credentials',
        '`unknown` rising: somebody guesses, or uses a withdrawn key. `throttled`: further ones of addresses that had sent 100 within a minute.',
        'reqps',
        { '{{cause}}': rate('weir_credentials_rejected_total', 'cause') },
      ),
    ],
    'The policy': [
      panel('Entities', 'A fall is a deletion; processes that differ for long do not follow.', 'none', {
        '{{kind}} {{instance}}': `weir_policy_entities{${chosen}}`,
      }),
      panel(
        'Changes',
        'When the policy was edited, and whether a process refused it: what changed just before something else did?',
        'none',
        { '{{result}} {{instance}}': `increase(weir_policy_changes_total{${chosen}}[$__rate_interval])` },
      ),
      panel('Since it was confirmed', 'Above a minute, changes and revoked keys do not arrive there.', 's', {
        '{{job}} {{instance}}': `time() - weir_policy_confirmed_timestamp_seconds{${chosen}}`,
      }),
    ],
  },
}
