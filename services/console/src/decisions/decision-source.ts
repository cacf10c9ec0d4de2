import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { topics } from '@weir/contracts/topics.ts'
import type { PolicyEdit } from '@weir/explain/impact/policy-edit.ts'
import { type ImpactQuestion, replayImpact } from '@weir/explain/impact/replay-impact.ts'
import { readPolicyAt } from '@weir/policy-changes/history-queries.ts'
import { limitKey } from '@weir/redis/keys.ts'
import { listDecisions } from './decision-list.ts'
import { findDecision, readRelated } from './decision-queries.ts'
import type { LiveDecisions } from './live-decisions.ts'

/** Decisions and their circumstances. Every method rejects when ClickHouse does not answer. */
export const openDecisionSource = (clickhouse: ClickHouseClient, streams: ClickHouseClient, live: LiveDecisions) => ({
  list: listDecisions.bind(undefined, clickhouse),
  find: findDecision.bind(undefined, clickhouse),
  related: readRelated.bind(undefined, clickhouse),
  /** Resolves to undefined where the history of the policy does not go back so far. */
  policyAt: readPolicyAt.bind(undefined, clickhouse, topics.policy),
  /** Decides recorded requests again, by an edited policy. */
  askImpact: (edit: PolicyEdit, question: ImpactQuestion) => replayImpact(streams, edit, question, limitKey),
  live,
})
/** Decisions and their circumstances. */
export type DecisionSource = ReturnType<typeof openDecisionSource>
