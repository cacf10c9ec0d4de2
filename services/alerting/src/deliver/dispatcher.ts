import type { Clock } from '@weir/core/clock.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { type ConnectionOptions, DelayedError, type Job, Queue, UnrecoverableError, Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import type { AfterTurn } from './deliver-alert.ts'
import { type DeliveryJob, jobIdOf } from './delivery-job.ts'

const queueName = 'weir-deliveries'
/** A finished job is remembered so long: the same alert, handed over again, finds it and is not sent twice. */
const finishedKeptSeconds = 48 * 3_600
/**
 * Attempts at a time in a process. Each waits on a socket and costs next to nothing; 500 endpoints that hang, before their circuits have
 * opened, must leave room for the others.
 */
const attemptsAtOnceMax = 2_048
/** Jobs added or asked about in one round trip. */
const jobsAtOnceMax = 1_000
/** Pause before a turn that rejected is taken again: doubles from the first to the longest. */
const repeatFirstMs = 1_000
const repeatMaxMs = 60_000
/** A job whose process is gone is taken up by another after so long; those under way say that they live every half of it. */
const lockMs = 10_000
const stalledLookMs = 5_000
/** How often a job may have lost its process before it counts as harmful; one that is killed over and over is not the job's fault. */
const stalledMax = 1_000

export interface Dispatcher {
  /** Resolves when all jobs are in Redis, for their first attempt when it is due. One that is there, or was, is left as it is. */
  enqueue(jobs: readonly DeliveryJob[]): Promise<void>
  /** Those of them that Redis knows nothing of. */
  missing(jobs: readonly DeliveryJob[]): Promise<DeliveryJob[]>
  close(): Promise<void>
}

function* chunks<T>(all: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < all.length; at += jobsAtOnceMax) yield all.slice(at, at + jobsAtOnceMax)
}

/** Before Redis is asked again for a job when it refused to give one, as to a user who lacks a right. */
const refusedPauseMs = 1_000

/** BullMQ's own asks again immediately, ten thousand times a second, unless there is no connection. */
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

/** BullMQ keeps jobs and their times in Redis, so that a schedule outlives every process; which attempt is due is the job's own. */
export function createDispatcher(options: {
  readonly deliver: (job: DeliveryJob) => Promise<AfterTurn>
  readonly redis: Redis
  readonly clock: Clock
  readonly log: Logger
}): Dispatcher {
  const { deliver, redis, clock, log } = options
  const connection: ConnectionOptions = redis
  const queue = new Queue<DeliveryJob>(queueName, {
    connection,
    defaultJobOptions: {
      // A turn that rejects, because Redis or Kafka was away, is taken again for as long as it takes.
      attempts: Number.MAX_SAFE_INTEGER,
      backoff: { type: 'custom' },
      removeOnComplete: { age: finishedKeptSeconds },
      removeOnFail: { age: finishedKeptSeconds },
    },
  })

  const process = async (job: Job<DeliveryJob>, token?: string) => {
    const after = await deliver(job.data)
    if (after.kind === 'over') return
    if (after.kind === 'given_up') throw new UnrecoverableError(after.reason)
    // What is due when stands in the job first: killed before it is put off, it puts itself off when it is taken up again.
    if (after.job !== job.data) await job.updateData(after.job)
    await job.moveToDelayed(after.atMs, token)
    throw new DelayedError()
  }
  const worker = new PatientWorker(queueName, process, {
    connection,
    concurrency: attemptsAtOnceMax,
    lockDuration: lockMs,
    stalledInterval: stalledLookMs,
    maxStalledCount: stalledMax,
    settings: { backoffStrategy: (made) => Math.min(repeatFirstMs * 2 ** Math.min(made, 16), repeatMaxMs) },
  })
  const onError = (error: Error) => log.warn({ err: error }, 'queue')
  queue.on('error', onError)
  worker.on('error', onError)
  worker.on('failed', (job, error) => log.warn({ job: job?.id, err: error }, 'delivery failed'))

  return {
    async enqueue(jobs) {
      const nowMs = clock.nowMs()
      for (const some of chunks(jobs)) {
        await queue.addBulk(
          some.map((job) => ({
            name: job.alert.type,
            data: job,
            opts: { jobId: jobIdOf(job), delay: Math.max(0, job.dueMs - nowMs) },
          })),
        )
      }
    },
    async missing(jobs) {
      const missing: DeliveryJob[] = []
      for (const some of chunks(jobs)) {
        const pipeline = redis.pipeline()
        for (const job of some) pipeline.exists(queue.toKey(jobIdOf(job)))
        const answers = (await pipeline.exec()) ?? []
        missing.push(...some.filter((_, at) => answers[at]?.[0] === null && answers[at]?.[1] === 0))
      }
      return missing
    },
    async close() {
      await worker.close()
      await queue.close()
    },
  }
}
