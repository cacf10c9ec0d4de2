import { randomUUID } from 'node:crypto'
import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { kafkajs } from '@weir/kafka/wire/kafkajs-fixes.ts'
import { clusterOf } from '@weir/kafka/wire/raw-cluster.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import type { NativeServer } from '@weir/local-programs/native-server.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import type { AclEntry, Admin, Kafka, KafkaConfig, SASLOptions } from 'kafkajs'
import { type AccessRight, aclOf } from './access-right.ts'
import { type Authority, createAuthority } from './certificates.ts'
import { alterScramPassword } from './scram-password.ts'
import { type RunningServer, startServer } from './start-server.ts'

export type Mechanism = 'plain' | 'scram-sha-256' | 'scram-sha-512'

/** The super user, by PLAIN. A broker that asks for rights knows nobody else who has any at the start. */
const adminName = 'admin'

/** The JAAS line of the PLAIN mechanism: who the broker is itself, and all users with their passwords. */
function plainJaas(own: string, users: Readonly<Record<string, string>>): string {
  const known = Object.entries(users).map(([user, password]) => ` user_${user}="${password}"`)
  const module = 'org.apache.kafka.common.security.plain.PlainLoginModule'
  return `${module} required username="${own}" password="${users[own]}"${known.join('')};`
}

interface Listeners {
  readonly saslPort: number
  readonly tlsPort: number
  readonly controllerPort: number
  /** The key and the certificate of the server, in PEM; and the authority of the certificates of its clients. */
  readonly keyStore: string
  readonly trustStore: string
  readonly plainUsers: Readonly<Record<string, string>>
}

/** What a production broker sets, behind the settings of the local Kafka: the last of equal names counts. */
function secureProperties({ saslPort, tlsPort, controllerPort, keyStore, trustStore, plainUsers }: Listeners) {
  const controller = { controller: randomUUID() }
  const scram = 'org.apache.kafka.common.security.scram.ScramLoginModule required;'
  const bearer = 'org.apache.kafka.common.security.oauthbearer'
  const open = `SASL_SSL://127.0.0.1:${saslPort},SSL://127.0.0.1:${tlsPort}`
  return {
    listeners: `${open},CONTROLLER://127.0.0.1:${controllerPort}`,
    'advertised.listeners': open,
    'listener.security.protocol.map': 'SASL_SSL:SASL_SSL,SSL:SSL,CONTROLLER:SASL_PLAINTEXT',
    'inter.broker.listener.name': 'SASL_SSL',
    'sasl.mechanism.inter.broker.protocol': 'PLAIN',
    'sasl.mechanism.controller.protocol': 'PLAIN',
    'listener.name.controller.sasl.enabled.mechanisms': 'PLAIN',
    'listener.name.controller.plain.sasl.jaas.config': plainJaas('controller', controller),
    'sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER',
    'listener.name.sasl_ssl.plain.sasl.jaas.config': plainJaas(adminName, plainUsers),
    'listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config': scram,
    'listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config': scram,
    'listener.name.sasl_ssl.oauthbearer.sasl.jaas.config': `${bearer}.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";`,
    'listener.name.sasl_ssl.oauthbearer.sasl.server.callback.handler.class': `${bearer}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler`,
    'ssl.keystore.type': 'PEM',
    'ssl.keystore.location': keyStore,
    'ssl.truststore.type': 'PEM',
    'ssl.truststore.location': trustStore,
    'listener.name.ssl.ssl.client.auth': 'required',
    'listener.name.ssl.ssl.principal.mapping.rules': 'RULE:^CN=([^,]+).*$/$1/',
    'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
    'super.users': `User:${adminName};User:controller`,
    'allow.everyone.if.no.acl.found': false,
  }
}

export interface SecureKafka extends Pick<RunningServer, 'pid' | 'kill' | 'restart'> {
  /** host:port where a client says who it is by a password or a token, over TLS. */
  readonly address: string
  /** host:port where a client says who it is by its certificate: its CN is the user. */
  readonly tlsAddress: string
  readonly authority: Authority
  /** In PEM: the authority of the server's certificate, and another that has signed nothing of it. */
  readonly caFile: string
  readonly otherCaFile: string
  /** The super user's client, connected. */
  readonly admin: Admin
  /** The super user's. */
  readonly client: Kafka
  /**
   * For SCRAM, in both sizes; the user need not be known before. In force when it returns, and open connections stay
   * open.
   */
  setPassword(user: string, password: string): Promise<void>
  /** Both are in force when they return: Kafka checks each request. */
  grant(user: string, rights: readonly AccessRight[]): Promise<void>
  revoke(user: string, rights: readonly AccessRight[]): Promise<void>
  /** What kafkajs needs to be this user. */
  asUser(user: string, password: string, mechanism?: Mechanism): KafkaConfig
  close(): Promise<void>
}

export interface SecureKafkaOptions {
  /** Beyond those of `secureProperties`, such as `connections.max.reauth.ms`. */
  readonly settings?: Readonly<Record<string, string | number>>
  /** Passwords by user, for the mechanism PLAIN. They cannot be changed later. */
  readonly plainUsers?: Readonly<Record<string, string>>
}

/** What a client presents for OAUTHBEARER: this broker believes every token that is not out of date. */
export function unsecuredToken(user: string, seconds = 600): string {
  const now = Math.floor(Date.now() / 1_000)
  const part = (fields: object) => Buffer.from(JSON.stringify(fields)).toString('base64url')
  return `${part({ alg: 'none' })}.${part({ sub: user, iat: now, exp: now + seconds })}.`
}

/**
 * A Kafka as it is in production: TLS, passwords, client certificates, and no right that is not granted. It starts with
 * a super user and no other; topics are made by `admin` or by `ensureTopics`.
 */
export async function startSecureKafka({
  settings = {},
  plainUsers = {},
}: SecureKafkaOptions = {}): Promise<SecureKafka> {
  const dir = await mkdtemp(join(tmpdir(), 'weir-test-secure-'))
  const authority = await createAuthority(dir)
  const other = await createAuthority(dir, 'other authority')
  const { certFile, keyFile } = await authority.issue('kafka')
  const keyStore = join(dir, 'kafka.pem')
  await writeFile(keyStore, `${await readFile(keyFile, 'utf8')}${await readFile(certFile, 'utf8')}`)
  const ca = await readFile(authority.caFile, 'utf8')
  const users = { ...plainUsers, [adminName]: randomUUID() }
  let address = ''
  let tlsAddress = ''
  const asUser = (user: string, password: string, mechanism: Mechanism = 'scram-sha-512'): KafkaConfig => ({
    brokers: [address],
    ssl: { ca },
    sasl: { mechanism, username: user, password } as SASLOptions,
    logLevel: kafkajs.logLevel.NOTHING,
  })
  const asAdmin = () =>
    new kafkajs.Kafka({ ...asUser(adminName, users[adminName] ?? '', 'plain'), retry: { retries: 0 } })
  const server: NativeServer = {
    ...kafkaServer,
    portCount: 3,
    async plan({ ports: [saslPort = 0, tlsPort = 0, controllerPort = 0], ...options }) {
      address = `127.0.0.1:${saslPort}`
      tlsAddress = `127.0.0.1:${tlsPort}`
      const plan = await kafkaServer.plan({ ...options, ports: [saslPort, controllerPort] })
      const listeners = { saslPort, tlsPort, controllerPort, keyStore, trustStore: authority.caFile, plainUsers: users }
      const lines = Object.entries({ ...secureProperties(listeners), ...settings }).map(
        ([name, to]) => `${name}=${to}\n`,
      )
      await appendFile(join(options.dir, 'server.properties'), lines.join(''))
      return { ...plan, ready: () => isReady(asAdmin()) }
    },
  }
  const running = await startServer(server)
  const client = asAdmin()
  const cluster = clusterOf(client)
  const admin = client.admin()
  await Promise.all([cluster.connect(), admin.connect()])
  const entries = (user: string, rights: readonly AccessRight[]) => rights.map((right) => aclOf(user, right))
  return {
    address,
    tlsAddress,
    authority,
    caFile: authority.caFile,
    otherCaFile: other.caFile,
    admin,
    client,
    asUser,
    pid: running.pid,
    kill: running.kill,
    restart: running.restart,
    async setPassword(user, password) {
      await alterScramPassword(cluster, user, password)
      await until(() => isReady(new kafkajs.Kafka({ ...asUser(user, password), retry: { retries: 0 } })))
    },
    async grant(user, rights) {
      const acl = entries(user, rights)
      if (acl.length > 0) await admin.createAcls({ acl })
      await until(async () => (await inForce(admin, acl)) === acl.length)
    },
    async revoke(user, rights) {
      const filters = entries(user, rights)
      if (filters.length === 0) return
      const { filterResponses } = await admin.deleteAcls({ filters })
      const missing = rights.filter((_, at) => filterResponses[at]?.matchingAcls.length !== 1)
      if (missing.length > 0) throw new Error(`${user} did not have ${JSON.stringify(missing)}`)
      await until(async () => (await inForce(admin, filters)) === 0)
    },
    async close() {
      await Promise.all([cluster.disconnect(), admin.disconnect()])
      await running.close()
      await rm(dir, { recursive: true, force: true })
    },
  }
}

/** The controller has taken a change before the broker knows of it, which takes milliseconds. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  if (!(await waitUntil(isSo, { deadlineMs: 10_000 })))
    throw new Error('the broker has not heard of the change in 10 s')
}

/** How many of these entries the broker goes by. */
async function inForce(admin: Admin, entries: readonly AclEntry[]): Promise<number> {
  const found = await Promise.all(entries.map((entry) => admin.describeAcls(entry)))
  return found.filter(({ resources }) => resources.length > 0).length
}

/** Whether a broker is registered and no longer fenced. */
async function isReady(client: Kafka): Promise<boolean> {
  const admin = client.admin()
  try {
    await admin.connect()
    return (await admin.describeCluster()).brokers.length > 0
  } catch {
    return false
  } finally {
    await admin.disconnect()
  }
}
