import { createRequire } from 'node:module'
import { fetchWithin } from './decompress.ts'
import { type FetchingGroup, waitAsNeeded } from './fetch-wait.ts'
import { decodeRecordBatch, lightBatch } from './fetched-record.ts'
import { frameRequest } from './frame-request.ts'
import { keepDenials, nameGroups, nameTopics } from './missing-rights.ts'

/*
 * kafkajs 2.2.4 is unmaintained. Its faults that matter to us are fixed here, on its own classes, before its main
 * module is loaded; every user of kafkajs imports it from this file. Everything is checked by test/servers/kafka.
 */

const requireCjs = createRequire(import.meta.url)

interface RequestQueue {
  readonly pending: readonly unknown[]
  readonly throttledUntil: number
  scheduleCheckPendingRequests(): void
}

interface BrokerPool {
  readonly brokers: Readonly<Record<string, unknown>>
  metadataExpireAt: number | null
  removeBroker(address: { host: string; port: number }): void
}

interface ConsumerGroup extends FetchingGroup {
  readonly groupId: string
  readonly memberId: string
  /** Of one generation: what it commits is sent with that one's number. */
  readonly offsetManager: OffsetManager
  getNodeIds(): readonly string[]
  joinAndSync(): Promise<void>
  recoverFromOffsetOutOfRange(error: { topic: string; partition: number }): Promise<void>
}

interface OffsetManager {
  commitOffsets(offsets: { readonly topics: readonly TopicOffsets[] }): Promise<void>
}

/** An offset to be committed, with text that Kafka stores beside it. */
export interface OffsetCommit {
  readonly partition: number
  readonly offset: string
  readonly metadata?: string
}

interface TopicOffsets {
  readonly topic: string
  readonly partitions: readonly OffsetCommit[]
}

/** Replaces an internal module's only export by `replacement`, for modules that require it later. */
function replaceModule(path: string, replacement: unknown): void {
  requireCjs(path)
  const loaded = requireCjs.cache[requireCjs.resolve(path)]
  if (loaded === undefined) throw new Error(`kafkajs has no ${path}: is it still version 2.2.4?`)
  loaded.exports = replacement
}

/**
 * From the first response on, the original re-arms a timer with a negative delay for ever: a loop of 1 ms per
 * connection.
 */
function stopBusyTimer(queue: { prototype: RequestQueue }): void {
  const schedule = queue.prototype.scheduleCheckPendingRequests
  queue.prototype.scheduleCheckPendingRequests = function () {
    if (this.pending.length === 0 && this.throttledUntil <= Date.now()) return
    schedule.call(this)
  }
}

/**
 * The original forgets a broker whose connection closed. Forgetting the last one ends a consumer with "no broker
 * available", and its successor has to wait until the group has given up the lost member. The last broker is kept, and
 * connected to again.
 */
function keepLastBroker(pool: { prototype: BrokerPool }): void {
  const remove = pool.prototype.removeBroker
  pool.prototype.removeBroker = function (address) {
    if (Object.keys(this.brokers).length > 1) remove.call(this, address)
    else this.metadataExpireAt = null
  }
}

/** How often a group has begun or finished joining: an odd step means its assignment is in doubt. */
const joins = new WeakMap<object, number>()
const fences = new WeakMap<object, () => boolean>()
/** Batches that are fetched from one of several brokers: those of the others come by themselves. */
const partial = new WeakSet<object>()

/** By member id, for callers that know of a group only its events. */
const memberships = new Map<string, { readonly isCurrent: () => boolean; readonly offsets: OffsetManager }>()
/** A process has a few consumers, each with a new member id after a lost connection; those long gone are forgotten. */
const membershipsMax = 100

/**
 * Kafka fences members, not owners: a commit made for an old assignment is sent with the new generation and accepted.
 * So every batch remembers under which assignment it was fetched. Batches that were fetched while the group re-joined
 * are dropped here.
 */
function fenceBatches(group: { prototype: ConsumerGroup }): void {
  const { joinAndSync, fetch } = group.prototype
  const step = (of: object) => joins.set(of, (joins.get(of) ?? 0) + 1)
  group.prototype.joinAndSync = async function () {
    step(this)
    await joinAndSync.call(this)
    step(this)
    const joined = joins.get(this)
    memberships.delete(this.memberId)
    memberships.set(this.memberId, { isCurrent: () => joins.get(this) === joined, offsets: this.offsetManager })
    for (const oldest of memberships.keys()) {
      if (memberships.size <= membershipsMax) break
      memberships.delete(oldest)
    }
  }
  group.prototype.fetch = async function (nodeId) {
    const before = joins.get(this)
    const batches = await fetchWithin(this.maxBytes, () => fetch.call(this, nodeId))
    const isCurrent = () => joins.get(this) === before
    const isPartial = this.getNodeIds().length > 1
    for (const batch of batches) {
      fences.set(batch, isCurrent)
      if (isPartial) partial.add(batch)
    }
    return isCurrent() ? batches : []
  }
}

/** Groups whose consumers end when the log does not reach to their offset. */
const strictGroups = new Set<string>()

/**
 * Where the log does not reach to a group's offset, the original commits the log's start over it and reads on as if
 * nothing had happened. A strict group ends instead, and compares its offset with the log when it begins again.
 */
function refuseToJump(group: { prototype: ConsumerGroup }): void {
  const recover = group.prototype.recoverFromOffsetOutOfRange
  group.prototype.recoverFromOffsetOutOfRange = async function (error) {
    if (!strictGroups.has(this.groupId)) return recover.call(this, error)
    const { topic, partition } = error
    throw Object.assign(new Error(`the log of partition ${partition} of ${topic} does not reach to where it is read`), {
      retriable: false,
    })
  }
}

/** Before a session ends: as kafkajs has it. */
const reauthenticateMs = 10_000

/**
 * The original logs in again 10 s before a session ends. One of 10 s or less it begins with every request, and Kafka
 * takes one login a second of a connection at most: here it is then the last fifth of the session.
 */
function reauthenticateInTime(connection: { readonly prototype: object }): void {
  const lifetimes = new WeakMap<object, { toNumber(): number }>()
  Object.defineProperty(connection.prototype, 'sessionLifetime', {
    get() {
      return lifetimes.get(this)
    },
    set(lifetime: { toNumber(): number }) {
      lifetimes.set(this, lifetime)
      this.reauthenticationThreshold = Math.min(reauthenticateMs, Math.floor(lifetime.toNumber() / 5))
    },
  })
}

replaceModule('kafkajs/src/protocol/request', frameRequest)
replaceModule('kafkajs/src/protocol/recordBatch/v0/decoder', decodeRecordBatch)
replaceModule('kafkajs/src/consumer/batch', lightBatch(requireCjs('kafkajs/src/consumer/batch')))
stopBusyTimer(requireCjs('kafkajs/src/network/requestQueue'))
keepLastBroker(requireCjs('kafkajs/src/cluster/brokerPool'))
waitAsNeeded(requireCjs('kafkajs/src/consumer/consumerGroup')) // before the fence, which has to see the group itself
fenceBatches(requireCjs('kafkajs/src/consumer/consumerGroup'))
refuseToJump(requireCjs('kafkajs/src/consumer/consumerGroup'))
nameTopics(requireCjs('kafkajs/src/network/connection'))
nameGroups(requireCjs('kafkajs/src/broker'))
keepDenials(requireCjs('kafkajs/src/cluster/brokerPool'))
reauthenticateInTime(requireCjs('kafkajs/src/network/connection'))

/** kafkajs with the fixes in place. */
export const kafkajs: typeof import('kafkajs') = requireCjs('kafkajs')

/** A login that Kafka refuses; the types know no message of it. */
export const loginFault = (message: string): Error =>
  Reflect.construct(kafkajs.KafkaJSSASLAuthenticationError, [message])

/** Whether the assignment that a batch was fetched under is still in force. Ask again after every await. */
export const isStillAssigned = (batch: object): boolean => fences.get(batch)?.() ?? false

/** Whether the assignment that a member joined with last is still in force. Ask again after every await. */
export const isMemberCurrent = (memberId: string): boolean => memberships.get(memberId)?.isCurrent() ?? false

/** Whether a batch was fetched from one of several brokers, so that batches of the others may follow it. */
export const isOfSeveralBrokers = (batch: object): boolean => partial.has(batch)

/**
 * Commits as a member, in the generation that it joined last: kafkajs's own way tries again by itself, in whichever
 * generation it is by then. Kafka takes offsets of any partition from a member.
 */
export async function commitAsMember(memberId: string, topic: string, partitions: readonly OffsetCommit[]) {
  const membership = memberships.get(memberId)
  if (membership === undefined) throw new kafkajs.KafkaJSError('the group is being joined')
  await membership.offsets.commitOffsets({ topics: [{ topic, partitions }] })
}

/** From now on a consumer of this group that stands outside the log ends with an error, and does not jump into it. */
export function refuseJumps(groupId: string): void {
  strictGroups.add(groupId)
}
