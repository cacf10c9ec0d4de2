import { randomUUID } from 'node:crypto'
import { encodeChange, encodeEntityChange, type PolicyMessage } from '@weir/contracts/policy.v1.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import type { TopicSpec } from '@weir/kafka/topics-file.ts'
import { type EntityChange, putEntity } from '@weir/policy/entities.ts'
import { entitiesOf } from '@weir/policy/state/entities-of.ts'
import { PolicyFeed, type PolicyFeedOptions } from '@weir/policy-feed/policy-feed.ts'
import { createPolicyWriter, type PolicyWriter } from '@weir/policy-feed/policy-writer.ts'
import { onTestFinished } from 'vitest'

/** A policy with one limit of this size, of which subject `acme` may use everything. */
export const policyOfSize = (size: number): string =>
  JSON.stringify({
    version: 1,
    plans: { free: { limits: ['minute'] } },
    limits: { minute: { algorithm: 'fixed_window', size, window: '1m' } },
    subjects: { acme: { plan: 'free' } },
  })

/** Every entity of a policy's text, put. */
export function changesOf(policyText: string): readonly EntityChange[] {
  const parsed = entitiesOf(policyText, 'test.yaml')
  if (parsed.kind === 'problems') throw new Error(JSON.stringify(parsed.problems))
  return parsed.entities.map(putEntity)
}

/** The limit of `policyOfSize` with another size. */
export const sizeChange = (size: number): EntityChange =>
  putEntity({
    kind: 'limit',
    name: 'minute',
    origin: 'admin',
    position: 0,
    body: { algorithm: 'fixed_window', size, window: '1m' },
  })

/** A subject on the plan of `policyOfSize`. */
export const subjectChange = (name: string, more: object = {}): EntityChange =>
  putEntity({ kind: 'subject', name, origin: 'admin', position: undefined, body: { plan: 'free', ...more } })

/** The messages of a whole change, the audit record last. */
export function wholeChange(
  changes: readonly EntityChange[],
  notices: readonly PolicyMessage[] = [],
): readonly PolicyMessage[] {
  const now = Date.now()
  const audit = encodeChange(uuidv7(now), { atMs: now, by: 'test', summary: [] })
  return [...changes.map(encodeEntityChange), ...notices, audit]
}

/** A policy topic that no other test knows. */
export async function createPolicyTopic(options: KafkaOptions, more: TopicSpec['config'] = {}): Promise<string> {
  const name = `test.policy.${randomUUID()}`
  await makePolicyTopic(options, name, more)
  return name
}

export async function makePolicyTopic(
  options: KafkaOptions,
  name: string,
  more: TopicSpec['config'] = {},
): Promise<void> {
  const config = { 'cleanup.policy': 'compact', 'max.message.bytes': String(16 * 1024 * 1024), ...more }
  await ensureTopics(options, [{ name, partitions: 1, replicationFactor: 1, minInsyncReplicas: 1, config }])
}

/** Closed when the test ends. */
export function openFeed(
  options: KafkaOptions,
  topic: string,
  more: Partial<
    Pick<PolicyFeedOptions, 'snapshotPath' | 'seed' | 'onAudit' | 'onAuditRestart' | 'startTimeoutMs'>
  > = {},
): PolicyFeed {
  const feed = new PolicyFeed({ ...options, topic, snapshotPath: '', seed: () => undefined, ...more })
  onTestFinished(() => feed.close())
  return feed
}

/** Closed when the test ends. */
export function openWriter(options: KafkaOptions, topic: string): PolicyWriter {
  const writer = createPolicyWriter({ ...options, topic })
  onTestFinished(() => writer.close())
  return writer
}

/** Size of the limit of `policyOfSize` in the policy in force. */
export const sizeInForce = (feed: PolicyFeed): number | undefined => feed.policy?.limits.get('minute')?.size
