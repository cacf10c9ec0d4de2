import { readFile } from 'node:fs/promises'
import { topics } from '@weir/contracts/topics.ts'
import { expect, test } from 'vitest'
import { parseTopics, topicsFile } from './topics-file.ts'

test('topics.json holds exactly the topics of the contracts', async () => {
  const specs = parseTopics(await readFile(topicsFile, 'utf8'))
  expect(specs.map((spec) => spec.name).sort()).toEqual(Object.values(topics).sort())
})

test('only the policy is compacted: every other topic keeps each record for its time', async () => {
  const specs = parseTopics(await readFile(topicsFile, 'utf8'))
  const compacted = specs.filter((spec) => spec.config['cleanup.policy'] !== 'delete')
  expect(compacted.map((spec) => spec.name)).toEqual([topics.policy])
})

test('All problems of a wrong file are named together', () => {
  const text = JSON.stringify({ replicationFactor: 0, minInsyncReplicas: 1, topics: { a: { partitions: 1.5 } } })
  expect(() => parseTopics(text)).toThrow(/replicationFactor.*a: partitions.*a: config/)
})
