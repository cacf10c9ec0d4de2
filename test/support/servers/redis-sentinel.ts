import { freePorts } from '@weir/runtime/ports.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { Redis } from 'ioredis'
import { type RedisProcess, startFamily } from './redis-process.ts'

export interface SentinelSetup {
  /** `redis+sentinel://…/weir` */
  readonly url: string
  /** The master at the start, then its replica. */
  readonly servers: readonly RedisProcess[]
  close(): Promise<void>
}

const masterName = 'weir'
/** So short that a test can wait for it; in production it is seconds. */
const downAfterMs = 500
const quorum = 2

async function ask<T>(port: number, run: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis({ port, host: '127.0.0.1', protocol: 2 })
  redis.on('error', () => undefined)
  try {
    return await run(redis)
  } finally {
    redis.disconnect()
  }
}

/** A master, a replica that follows it, and three Sentinels that agree. */
export async function startSentinels(): Promise<SentinelSetup> {
  const [masterPort = 0, replicaPort = 0, ...sentinelPorts] = await freePorts(5)
  const family = await startFamily('sentinel')
  const plain = (port: number) => [`port ${port}`, 'bind 127.0.0.1', 'repl-diskless-sync-delay 0']
  const master = await family.start(masterPort, plain(masterPort))
  const replica = await family.start(replicaPort, [...plain(replicaPort), `replicaof 127.0.0.1 ${masterPort}`])
  for (const port of sentinelPorts) {
    const lines = [
      `port ${port}`,
      'bind 127.0.0.1',
      `sentinel monitor ${masterName} 127.0.0.1 ${masterPort} ${quorum}`,
      `sentinel down-after-milliseconds ${masterName} ${downAfterMs}`,
      `sentinel failover-timeout ${masterName} 5000`,
    ]
    await family.start(port, lines, ['--sentinel'])
  }
  const agreed = await waitUntil(
    async () => {
      const known = await Promise.all(
        sentinelPorts.map((port) =>
          ask(port, (redis) => redis.call('sentinel', 'ckquorum', masterName)).catch(() => ''),
        ),
      )
      const others = await ask(sentinelPorts[0] ?? 0, (redis) => redis.call('sentinel', 'replicas', masterName))
      const link = await ask(replicaPort, (redis) => redis.info('replication'))
      const isLinked = link.includes('master_link_status:up')
      return (
        known.every((answer) => String(answer).startsWith('OK 3')) &&
        Array.isArray(others) &&
        others.length === 1 &&
        isLinked
      )
    },
    { deadlineMs: 20_000 },
  )
  if (agreed !== true) throw new Error('the Sentinels did not come to agree on a master with one replica')
  const list = sentinelPorts.map((port) => `127.0.0.1:${port}`).join(',')
  return { url: `redis+sentinel://${list}/${masterName}`, servers: [master, replica], close: family.close }
}
