import { readFile } from 'node:fs/promises'
import { WeirError } from '@weir/core/errors.ts'

/** A topic as it should be. Replication is lowered to the number of brokers where there are fewer. */
export interface TopicSpec {
  readonly name: string
  readonly partitions: number
  readonly replicationFactor: number
  readonly minInsyncReplicas: number
  /** Kafka's own names and texts. */
  readonly config: Readonly<Record<string, string>>
}

/** infra/kafka/topics.json of this checkout. */
export const topicsFile = new URL('../../../infra/kafka/topics.json', import.meta.url)

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 1

const isTexts = (value: unknown): value is Readonly<Record<string, string>> =>
  isObject(value) && Object.values(value).every((one) => typeof one === 'string')

/** The topics of infra/kafka/topics.json. All problems are reported together. */
export function parseTopics(text: string): TopicSpec[] {
  const problems: string[] = []
  const whole: unknown = JSON.parse(text)
  const { replicationFactor, minInsyncReplicas, topics } = isObject(whole) ? whole : {}
  if (!isCount(replicationFactor)) problems.push('replicationFactor is not a positive integer')
  if (!isCount(minInsyncReplicas)) problems.push('minInsyncReplicas is not a positive integer')
  if (!isObject(topics)) problems.push('topics is not an object')
  const specs: TopicSpec[] = []
  for (const [name, topic] of isObject(topics) ? Object.entries(topics) : []) {
    const { partitions, config } = isObject(topic) ? topic : {}
    if (!isCount(partitions)) problems.push(`${name}: partitions is not a positive integer`)
    if (!isTexts(config)) problems.push(`${name}: config is not an object with string values`)
    if (!isCount(replicationFactor) || !isCount(minInsyncReplicas) || !isCount(partitions) || !isTexts(config)) continue
    specs.push({ name, partitions, replicationFactor, minInsyncReplicas, config })
  }
  if (problems.length > 0) throw new WeirError('CONFIG_INVALID', `infra/kafka/topics.json: ${problems.join('; ')}`)
  return specs
}

/** Reads and checks infra/kafka/topics.json. */
export async function readTopics(): Promise<TopicSpec[]> {
  return parseTopics(await readFile(topicsFile, 'utf8'))
}
