import type { Kafka, LogEntry, RetryOptions } from 'kafkajs'
import { mechanismOf } from './log-in.ts'
import { socketFactory } from './open-socket.ts'
import type { KafkaSecurity } from './security.ts'
import { kafkajs } from './wire/kafkajs-fixes.ts'
import { type Cluster, clusterOf } from './wire/raw-cluster.ts'

/** The part of a pino logger that this package writes to: fields first, then the event's name. */
export interface KafkaLog {
  debug(fields: object, event: string): void
  info(fields: object, event: string): void
  warn(fields: object, event: string): void
  error(fields: object, event: string): void
}

/** How a process reaches Kafka. */
export interface KafkaOptions {
  /** host:port, at least one; the others are found through it. */
  readonly brokers: readonly string[]
  /** Names this process in the brokers' logs. */
  readonly clientId: string
  readonly log: KafkaLog
  /** Without it Kafka is spoken to in plain text and asks for no password. */
  readonly security?: KafkaSecurity | undefined
  /** Called with what the library says of an attempt that failed, which it mostly repeats by itself. */
  readonly onTrouble?: (message: string) => void
  /** What topics and groups are for, where there is one right that cannot be done without. */
  readonly purpose?: 'Read' | 'Write'
}

/** What a broker gets for one request, before the connection counts as lost. */
export const requestTimeoutMs = 10_000

/** Our own loops retry; kafkajs only bridges the moment in which a new leader or coordinator is being named. */
const clientRetry: RetryOptions = { initialRetryTime: 100, maxRetryTime: 1_000, multiplier: 2, factor: 0.2, retries: 1 }

/** kafkajs calls an error what is often the first of many attempts: what matters is said again by those who call it. */
function writeEntry({ log, onTrouble }: KafkaOptions, { level, namespace, log: entry }: LogEntry): void {
  const { message, timestamp: _timestamp, logger: _logger, stack: _stack, ...fields } = entry
  const line = { ...fields, part: namespace, message }
  const { ERROR, WARN } = kafkajs.logLevel
  const isTrouble = level === ERROR || level === WARN
  if (isTrouble) onTrouble?.(message)
  if (isTrouble) log.info(line, 'kafkajs')
  else log.debug(line, 'kafkajs')
}

/**
 * A client of its own for every user: kafkajs keeps the committed offsets of a group in the client, so two consumers of
 * one group must not share one. Nothing is connected yet.
 */
export function createClient(options: KafkaOptions, retry: RetryOptions = clientRetry): Kafka {
  const { brokers, clientId, security, purpose } = options
  return new kafkajs.Kafka({
    brokers: [...brokers],
    clientId,
    // A listening broker accepts within a network round trip; the first handshake of a TLS server takes some, and its
    // processor.
    connectionTimeout: security?.tls === undefined ? 3_000 : 10_000,
    socketFactory: Object.assign(socketFactory(security), { security, purpose }),
    ...(security?.sasl === undefined ? {} : { sasl: mechanismOf(security.sasl, options.onTrouble) }),
    requestTimeout: requestTimeoutMs,
    retry,
    logLevel: kafkajs.logLevel.INFO,
    logCreator: () => (entry) => writeEntry(options, entry),
  })
}

/** Makes a cluster, kafkajs's view of all brokers, of a client of its own. Nothing is connected yet. */
export const createCluster = (options: KafkaOptions): Cluster => clusterOf(createClient(options))
