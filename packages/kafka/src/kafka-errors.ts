import { WeirError } from '@weir/core/errors.ts'
import { kafkajs } from './wire/kafkajs-fixes.ts'

/** Answers by which the group says that this member, or its generation, is not in it any more. */
const lostTypes = new Set(['REBALANCE_IN_PROGRESS', 'ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'FENCED_INSTANCE_ID'])

/** What made an attempt fail, below kafkajs's "retries exceeded" and the like. */
function rootOf(error: unknown): unknown {
  let root = error
  for (let depth = 0; depth < 5 && root instanceof Error && root.cause instanceof Error; depth += 1) root = root.cause
  return root
}

const typeOf = (error: unknown): string =>
  error instanceof Error && 'type' in error && typeof error.type === 'string' ? error.type : ''

/** Whether kafkajs itself can act on this error: re-join the group, reconnect, or find the new leader. */
export const isKafkaError = (error: unknown): boolean => error instanceof kafkajs.KafkaJSError

/** Whether the group has moved on: only joining it again helps. */
export const isLostMembership = (error: unknown): boolean => lostTypes.has(typeOf(rootOf(error)))

/** Whether Kafka has answered that there is no such topic. */
export const isMissingTopic = (error: unknown): boolean => typeOf(rootOf(error)) === 'UNKNOWN_TOPIC_OR_PARTITION'

/**
 * kafkajs's errors that a person has to fix. Many others it calls final too, such as "no coordinator found" of a broker
 * that restarts.
 */
const finalNames = new Set([
  'KafkaJSServerDoesNotSupportApiKey',
  'KafkaJSNotImplemented',
  'KafkaJSUnsupportedMagicByteInMessageSet',
])

/**
 * Whether a person has to correct a variable, a file or a right: the reason names it. Waiting helps once that is done.
 */
export const isDenied = (error: unknown): boolean =>
  /WEIR_KAFKA_/.test(reasonOf(error)) || /AUTHORIZATION_FAILED$|SASL/.test(typeOf(rootOf(error)))

/** Members with another way to share out partitions are in the group: Kafka refuses us until the last has left. */
const otherVersion = 'INCONSISTENT_GROUP_PROTOCOL'

const metadataTooLarge = 'OFFSET_METADATA_TOO_LARGE'

/** Whether Kafka refuses a commit because its metadata is longer than `offset.metadata.max.bytes`. */
export const isMetadataTooLarge = (error: unknown): boolean => typeOf(rootOf(error)) === metadataTooLarge

/** Whether the same attempt may succeed later by itself; true for everything that is not known to be final. */
export function isTransient(error: unknown): boolean {
  const root = rootOf(error)
  if (!(root instanceof kafkajs.KafkaJSError)) return true
  if (isDenied(root)) return true
  if (finalNames.has(root.name)) return false
  if (typeOf(root) === otherVersion) return true
  return !(root instanceof kafkajs.KafkaJSProtocolError) || root.retriable || lostTypes.has(typeOf(root))
}

/** One line for people: what the root of the fault said. */
export function reasonOf(error: unknown): string {
  const root = rootOf(error)
  if (typeOf(root) === otherVersion) return 'the consumer group has members that run another version: stop them first'
  if (typeOf(root) === metadataTooLarge) {
    return 'the broker does not allow enough metadata per offset: set its offset.metadata.max.bytes to 256 or more'
  }
  const reason = root instanceof Error ? root.message : String(root)
  return reason.includes('WEIR_KAFKA_') ? reason.replace(/^(Connection error|Failed to connect): /, '') : reason
}

/** A fault of Kafka in our own words: lost partition, unreachable for now, or refused for good. */
export function kafkaFault(what: string, error: unknown): WeirError {
  if (error instanceof WeirError) return error
  const reason = reasonOf(error)
  if (isLostMembership(error)) {
    return new WeirError(
      'PARTITION_LOST',
      `${what}: the group has moved on (${reason}); the new owner reads it again`,
      error,
    )
  }
  if (isDenied(error)) return new WeirError('KAFKA_DENIED', `${what}: ${reason}`, error)
  return isTransient(error)
    ? new WeirError('KAFKA_UNAVAILABLE', `${what}: ${reason}; check that the brokers are up, and try again`, error)
    : new WeirError('KAFKA_REFUSED', `${what}: ${reason}; a retry will not help`, error)
}
