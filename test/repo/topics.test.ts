import { topics } from '@weir/contracts/topics.ts'
import { minInSync } from '@weir/kafka/topic-health.ts'
import { parseTopics } from '@weir/kafka/topics-file.ts'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { textOf } from './read-tree.ts'
import { namedRows } from './rules/named-rows.ts'

const specs = parseTopics(textOf('infra/kafka/topics.json'))

test('topics.json creates exactly the topics that the code writes and reads', () => {
  expect(specs.map(({ name }) => name).toSorted()).toEqual(Object.values(topics).toSorted())
})

test('The metric of partitions that take no record holds for topics as topics.json makes them', () => {
  expect(new Set(specs.map(({ minInsyncReplicas }) => minInsyncReplicas))).toEqual(new Set([minInSync]))
})

test('a decision and its outcome have the same partition, and so are on the same shard of ClickHouse', () => {
  const partitionsOf = (topic: string) => specs.find(({ name }) => name === topic)?.partitions
  expect(partitionsOf(topics.outcomes)).toBe(partitionsOf(topics.decisions))
})

test('the policy is one log, kept by key, that takes a whole change as one batch', () => {
  const policy = specs.find(({ name }) => name === topics.policy)
  expect(policy?.partitions).toBe(1)
  expect(policy?.config['cleanup.policy']).toBe('compact')
  // Four times the part of a change that is published at once.
  expect(Number(policy?.config['max.message.bytes'])).toBe(16 * 1024 * 1024)
})

test("infra/kafka/README.md names every topic's partitions as topics.json does", () => {
  const path = 'infra/kafka/README.md'
  const rows = namedRows({ path, text: textOf(path) }, (name) => name.startsWith('weir.') || name === '*.dlq')
  const shown = rows.map(({ name, cells }) => [name, Number(cells[1])])
  const letters = specs.filter(({ name }) => name.endsWith('.dlq')).map(({ partitions }) => ['*.dlq', partitions])
  const others = specs.filter(({ name }) => !name.endsWith('.dlq')).map(({ name, partitions }) => [name, partitions])
  expect(shown.toSorted()).toEqual([...others, ...letters.slice(0, 1)].toSorted())
  expect(new Set(letters.map(String)).size).toBe(1)
})

test('docs/asyncapi.yaml describes every topic, and every type of alert by its published schema', () => {
  const api: {
    readonly channels: Readonly<Record<string, { readonly address: string }>>
    readonly components: { readonly messages: Readonly<Record<string, { name: string; payload: { $ref: string } }>> }
  } = parse(textOf('docs/asyncapi.yaml'))
  expect(
    Object.values(api.channels)
      .map(({ address }) => address)
      .toSorted(),
  ).toEqual(Object.values(topics).toSorted())
  const { $defs }: { $defs: object } = JSON.parse(textOf('docs/schemas/weir.alerts.v1.json'))
  const described = Object.values(api.components.messages)
  expect(described.map(({ name }) => name).toSorted()).toEqual(Object.keys($defs).toSorted())
  for (const { name, payload } of described) expect(payload.$ref).toBe(`schemas/weir.alerts.v1.json#/$defs/${name}`)
})
