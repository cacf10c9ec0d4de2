import type { Clock } from '@weir/core/clock.ts'
import { encodeKeyPart } from '@weir/core/key-encoding.ts'
import { backoffMs } from '@weir/runtime/backoff.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { type ConnectionOptions, DelayedError, type Job, Queue, UnrecoverableError, Worker } from 'bullmq'
import type { Cluster, Redis } from 'ioredis'
import type { QueueState } from '../metrics.ts'
import type { DeliveryJob, JobOutcome } from '../types.ts'

const queueName = 'weir-deliveries'
/**
 * The start of its keys' names. On a Cluster the hash tag puts all of them in one slot, as BullMQ's scripts need;
 * elsewhere it is BullMQ's own, by which processes of other versions find the same jobs.
 */
const prefixOf = ({ isCluster }: Redis | Cluster) => (isCluster ? `{${queueName}}` : 'bull')
/** How long BullMQ remembers a finished job: the same alert, queued again, finds it and is not sent twice. */
const finishedKeptSeconds = 48 * 3_600
/**
 * Concurrent attempts of a process. Each waits on a socket and costs next to nothing; 500 endpoints that hang, before
 * their circuits have opened, must leave capacity for the others.
 */
const concurrentAttemptsMax = 2_048
/** Jobs that one round trip adds or looks up. */
const jobsPerCallMax = 1_000
/** Pauses before a run that rejected is repeated. */
const pauses = { firstMs: 1_000, maxMs: 60_000 }
/**
 * After this time another process takes over a job whose process died; living processes renew their locks twice within
 * it.
 */
const lockMs = 10_000
const stalledLookMs = 5_000
/** How often a job may lose its process before BullMQ gives it up. High: repeated kills are not the job's fault. */
const stalledMax = 1_000

/** Returns the id of a job: Kafka or the sweep, queueing the same again, finds the job that is there. */
export const jobIdOf = ({ alert, endpoint, requestedMs }: DeliveryJob) =>
  `${alert.id}.${encodeKeyPart(endpoint)}${requestedMs === 0 ? '' : `.${requestedMs}`}`

function* chunks<T>(all: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < all.length; at += jobsPerCallMax) yield all.slice(at, at + jobsPerCallMax)
}

/** Pause after Redis refused to give a job, as to a user without the right. */
const refusedPauseMs = 1_000

/** Pauses after a refusal: BullMQ's own worker asks again immediately, ten thousand times a second. */
class PatientWorker extends Worker<DeliveryJob> {
  protected override async moveToActive(token: string, name?: string) {
    try {
      return await super.moveToActive(token, name)
    } catch (error) {
      await this.delay(refusedPauseMs)
      throw error
    }
  }
}

const defaultJobOptions = {
  // A run that rejects, because Redis or Kafka was unavailable, is repeated without a limit.
  attempts: Number.MAX_SAFE_INTEGER,
  backoff: { type: 'custom' },
  removeOnComplete: { age: finishedKeptSeconds },
  removeOnFail: { age: finishedKeptSeconds },
}

/** BullMQ adds on the left, and takes on the right. */
async function readState(queue: Pick<Queue, 'toKey'>, redis: Redis | Cluster, nowMs: number): Promise<QueueState> {
  const key = (name: string) => queue.toKey(name)
  const [ready, delayed, active, [oldest]] = await Promise.all([
    redis.llen(key('wait')),
    redis.zcard(key('delayed')),
    redis.llen(key('active')),
    redis.lrange(key('wait'), -1, -1),
  ])
  // It may have been taken meanwhile.
  const data = oldest === undefined ? null : await redis.hget(key(oldest), 'data')
  const job: DeliveryJob | undefined = data === null ? undefined : JSON.parse(data)
  return { waiting: { ready, delayed, active }, oldestReadyMs: Math.max(0, nowMs - (job?.dueMs ?? nowMs)) }
}

/** The queue of deliveries, with this process's workers. */
export type Dispatcher = ReturnType<typeof createDispatcher>

/**
 * BullMQ keeps jobs and their times in Redis, so that a schedule outlives every process; which attempt is due is the
 * job's own.
 */
export function createDispatcher(options: {
  readonly deliver: (job: DeliveryJob) => Promise<JobOutcome>
  readonly redis: Redis | Cluster
  readonly clock: Clock
  readonly log: Logger
}) {
  const { deliver, redis, clock, log } = options
  const connection: ConnectionOptions = redis
  const prefix = prefixOf(redis)
  const queue = new Queue<DeliveryJob>(queueName, { connection, prefix, defaultJobOptions })

  const process = async (job: Job<DeliveryJob>, token?: string) => {
    const after = await deliver(job.data)
    if (after.kind === 'over') return
    if (after.kind === 'given_up') throw new UnrecoverableError(after.reason)
    // The job stores its due time first: if the process dies before it delays the job, the next run delays it.
    if (after.job !== job.data) await job.updateData(after.job)
    await job.moveToDelayed(after.atMs, token)
    throw new DelayedError()
  }
  const worker = new PatientWorker(queueName, process, {
    connection,
    prefix,
    concurrency: concurrentAttemptsMax,
    lockDuration: lockMs,
    stalledInterval: stalledLookMs,
    maxStalledCount: stalledMax,
    settings: { backoffStrategy: (made) => backoffMs(made, pauses) },
  })
  const onError = (error: Error) => log.warn({ err: error }, 'queue')
  queue.on('error', onError)
  worker.on('error', onError)
  worker.on('failed', (job, error) => log.warn({ job: job?.id, err: error }, 'delivery failed'))

  return {
    /** Resolves when all jobs are in Redis, due at the time of their next attempt. A known job stays as it is. */
    async enqueue(jobs: readonly DeliveryJob[]): Promise<void> {
      const nowMs = clock.nowMs()
      for (const some of chunks(jobs)) {
        const added = some.map((job) => {
          const opts = { jobId: jobIdOf(job), delay: Math.max(0, job.dueMs - nowMs) }
          return { name: job.alert.type, data: job, opts }
        })
        await queue.addBulk(added)
      }
    },
    /** Returns the jobs that Redis does not know. */
    async missing(jobs: readonly DeliveryJob[]): Promise<DeliveryJob[]> {
      const missing: DeliveryJob[] = []
      for (const some of chunks(jobs)) {
        const pipeline = redis.pipeline()
        for (const job of some) pipeline.exists(queue.toKey(jobIdOf(job)))
        const answers = (await pipeline.exec()) ?? []
        missing.push(...some.filter((_, at) => answers[at]?.[0] === null && answers[at]?.[1] === 0))
      }
      return missing
    },
    /** As all processes share it. */
    state: () => readState(queue, redis, clock.nowMs()),
    async close(): Promise<void> {
      await worker.close()
      await queue.close()
    },
  }
}
