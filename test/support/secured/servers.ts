import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import { connectRedis } from '@weir/redis/connect.ts'
import { documentedRights } from '../documented-rights.ts'
import { startTlsRedis } from '../servers/redis-tls.ts'
import { startSecureClickhouse } from '../servers/secure-clickhouse.ts'
import { startSecureKafka } from '../servers/secure-kafka.ts'

type Environment = Readonly<Record<string, string>>

/** Everybody who logs in to a server; `all` is who may do everything, which only tests need. */
const usersOf = {
  kafka: ['ingress', 'metering', 'alerting', 'console', 'topics', 'audit', 'all'],
  redis: ['ingress', 'claims', 'queue', 'console', 'all'],
  clickhouse: ['metering', 'alerting', 'console', 'migrate', 'audit'],
} as const
type ServerName = keyof typeof usersOf

/** Where it is not of the same name. */
const redisUserOf: Readonly<Record<string, string>> = { alerting: 'claims', audit: 'console' }

/** The lines of docs/configuration.md. */
function redisRights(): ReadonlyMap<string, string> {
  const page = readFileSync(join(projectRoot, 'docs/configuration.md'), 'utf8')
  const lines = page.matchAll(/^ACL SETUSER weir-(\w+) on >PASSWORD (.*)$/gm)
  return new Map([...lines].map(([, user = '', rule = '']) => [user, rule]))
}

export interface SecuredServers {
  /** What finds them for the user who may do everything. */
  readonly environment: Environment
  /** The same for one service or command: its own users, of exactly the rights of docs/configuration.md. */
  environmentOf(name: string): Environment
  /** `kill -9`, and a start on the same data. */
  restart(name: ServerName): Promise<void>
  /**
   * Gives every user another password. Connections stay; who opens one by the old password is refused. Resolves to what
   * writes the files.
   */
  changePasswords(): Promise<() => Promise<void>>
  /** Ends every connection to every server. */
  closeConnections(): Promise<void>
  close(): Promise<void>
}

const everything = [
  { resource: 'Topic', name: '*', operation: 'All' },
  { resource: 'Group', name: '*', operation: 'All' },
] as const

async function openServers() {
  const kafka = await startSecureKafka()
  const durable = ['appendonly yes', 'appendfsync everysec', 'maxmemory-policy noeviction']
  const [redis, clickhouse] = await Promise.all([
    startTlsRedis([...durable, 'user default on nopass ~* &* +@all'], 'yes'),
    startSecureClickhouse(kafka.authority),
  ])
  const operator = connectRedis(`rediss://127.0.0.1:${redis.port}`, {
    role: 'queue',
    tls: redis.files,
    onError: () => undefined,
  })
  return { kafka, redis, clickhouse, operator }
}

type Servers = Awaited<ReturnType<typeof openServers>>

/** Variables for the servers; `file` names the one with the secret of a user. */
function environments({ kafka, redis, clickhouse }: Servers, file: (server: ServerName, user: string) => string) {
  const as = (user: string): Environment => ({
    WEIR_KAFKA_BROKERS: kafka.address,
    WEIR_KAFKA_TLS_CA: kafka.caFile,
    WEIR_KAFKA_SASL_MECHANISM: 'SCRAM-SHA-512',
    WEIR_KAFKA_SASL_USERNAME: `weir-${user}`,
    WEIR_KAFKA_SASL_PASSWORD_FILE: file('kafka', user),
    ...(user === 'metering' ? {} : { WEIR_REDIS_URL_FILE: file('redis', redisUserOf[user] ?? user) }),
    ...(user === 'alerting' ? { WEIR_QUEUE_REDIS_URL_FILE: file('redis', 'queue') } : {}),
    WEIR_REDIS_TLS_CA: redis.files.redisTlsCa,
    WEIR_REDIS_TLS_CERT: redis.files.redisTlsCert,
    WEIR_REDIS_TLS_KEY: redis.files.redisTlsKey,
  })
  const clickhouseOf = (user: string): Environment => ({
    WEIR_CLICKHOUSE_URL: clickhouse.url,
    WEIR_CLICKHOUSE_TLS_CA: kafka.caFile,
    WEIR_CLICKHOUSE_USER: `weir-${user}`,
    WEIR_CLICKHOUSE_PASSWORD_FILE: file('clickhouse', user),
  })
  return {
    environment: { ...as('all'), WEIR_CLICKHOUSE_URL: clickhouse.engineUrl },
    environmentOf: (name: string): Environment => ({ ...as(name), ...(name === 'ingress' ? {} : clickhouseOf(name)) }),
  }
}

/**
 * A Redis, a Kafka and a ClickHouse as a security team has them: TLS, a user for each service, and passwords in files.
 */
export async function startSecuredServers(): Promise<SecuredServers> {
  const dir = await mkdtemp(join(tmpdir(), 'weir-test-secrets-'))
  const servers = await openServers()
  const { kafka, redis, clickhouse, operator } = servers
  const file = (server: ServerName, user: string) => join(dir, `${server}-${user}`)
  const redisUrl = (user: string, password: string) => `rediss://weir-${user}:${password}@127.0.0.1:${redis.port}`
  const setPassword: Readonly<Record<ServerName, (user: string, password: string) => unknown>> = {
    kafka: (user, password) => kafka.setPassword(`weir-${user}`, password),
    redis: (user, password) => operator.acl('SETUSER', `weir-${user}`, 'resetpass', `>${password}`),
    clickhouse: (user, password) => clickhouse.setPassword(`weir-${user}`, password),
  }
  const changePasswords = async () => {
    const files: [path: string, text: string][] = []
    for (const [server, users] of Object.entries(usersOf) as [ServerName, readonly string[]][])
      for (const user of users) {
        const password = randomBytes(18).toString('hex')
        await setPassword[server](user, password)
        files.push([file(server, user), server === 'redis' ? redisUrl(user, password) : password])
      }
    // What a kill must not forget.
    await operator.config('REWRITE')
    return async () => {
      for (const [path, text] of files) {
        await writeFile(`${path}.new`, `${text}\n`, { mode: 0o600 })
        await rename(`${path}.new`, path)
      }
    }
  }
  const [redisRules, kafkaRules] = [redisRights(), documentedRights()]
  for (const user of usersOf.redis)
    await operator.acl('SETUSER', `weir-${user}`, 'on', ...(redisRules.get(user) ?? '~* &* +@all').split(' '))
  await (await changePasswords())()
  for (const user of usersOf.kafka) await kafka.grant(`weir-${user}`, kafkaRules.get(`weir-${user}`) ?? everything)

  const restart = async (name: ServerName) => {
    const server = { kafka, redis: redis.process, clickhouse }[name]
    await server.kill('SIGKILL')
    await server.restart()
  }
  return {
    ...environments(servers, file),
    restart,
    changePasswords,
    async closeConnections() {
      clickhouse.closeConnections()
      for (const user of usersOf.redis) await operator.client('KILL', 'USER', `weir-${user}`)
      await restart('kafka')
    },
    async close() {
      operator.disconnect()
      await Promise.all([kafka.close(), redis.close(), clickhouse.close(), rm(dir, { recursive: true })])
    },
  }
}
