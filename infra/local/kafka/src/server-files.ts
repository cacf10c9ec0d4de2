import { join } from 'node:path'

/** Ports and paths that differ from start to start. */
export interface ServerFilesOptions {
  /** Relative to the folder that Kafka is started in: its files take no comma in a path, and nothing beyond Latin 1. */
  readonly dataDir: string
  readonly brokerPort: number
  readonly controllerPort: number
  /** Undefined for a Kafka where every caller may do everything. */
  readonly secured?: { readonly port: number; readonly username: string; readonly password: string }
}

/**
 * A second listener with a password, and rights: callers of the first one have those that ACLs give them. PLAIN takes
 * the password from here, SCRAM from the metadata, where `rights.ts` puts it; kcat of Debian 12 can do PLAIN only
 * (librdkafka before 2.6.1 repeats the nonce of SCRAM, which Kafka 4 refuses).
 */
function securitySettings({ port, username, password }: NonNullable<ServerFilesOptions['secured']>, listeners: string) {
  const modules = 'org.apache.kafka.common.security'
  const login = `required username="${username}" password="${password}"`
  const plain = `${modules}.plain.PlainLoginModule ${login} user_${username}="${password}";`
  return {
    listeners: `${listeners},SECURED://127.0.0.1:${port}`,
    'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT,SECURED:SASL_PLAINTEXT',
    'inter.broker.listener.name': 'SECURED',
    'sasl.mechanism.inter.broker.protocol': 'PLAIN',
    'sasl.mechanism.controller.protocol': 'PLAIN',
    'listener.name.controller.sasl.enabled.mechanisms': 'PLAIN',
    'listener.name.controller.plain.sasl.jaas.config': plain,
    'listener.name.secured.sasl.enabled.mechanisms': 'SCRAM-SHA-256,PLAIN',
    'listener.name.secured.plain.sasl.jaas.config': plain,
    'listener.name.secured.scram-sha-256.sasl.jaas.config': `${modules}.scram.ScramLoginModule required;`,
    // Kafka allocates a request's memory as soon as it has read its length: its heap must hold all requests that
    // other users can begin.
    'socket.request.max.bytes': 17_825_792, // a policy has up to 16 MiB
    'listener.name.plaintext.max.connections': 24,
    'sasl.server.max.receive.size': 4_096, // of a login
    'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
    'super.users': `User:${username}`,
  }
}

/**
 * One node that is broker and controller. The quorum is the static kind (`controller.quorum.voters`): its data holds
 * only the voter's number, so that the next start may use other ports, where the dynamic kind keeps the address in its
 * log.
 */
export function serverProperties({ dataDir, brokerPort, controllerPort, secured }: ServerFilesOptions): string {
  const listeners = `PLAINTEXT://127.0.0.1:${brokerPort},CONTROLLER://127.0.0.1:${controllerPort}`
  const settings = {
    'process.roles': 'broker,controller',
    'node.id': 1,
    'controller.quorum.voters': `1@127.0.0.1:${controllerPort}`,
    listeners,
    'controller.listener.names': 'CONTROLLER',
    'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
    'log.dirs': dataDir,
    'auto.create.topics.enable': false,
    'offsets.topic.num.partitions': 4, // 50 by default, each with files of its own; a handful of groups needs no more
    'offsets.topic.replication.factor': 1,
    'transaction.state.log.num.partitions': 1,
    'transaction.state.log.replication.factor': 1,
    'transaction.state.log.min.isr': 1,
    'share.coordinator.state.topic.num.partitions': 1,
    'share.coordinator.state.topic.replication.factor': 1,
    'share.coordinator.state.topic.min.isr': 1,
    'group.initial.rebalance.delay.ms': 0,
    'group.min.session.timeout.ms': 1_000, // tests of lost members would else wait 6 s
    // After kill -9 the controller refuses the broker until its old session has ended: 13 s with the defaults, 4 s so.
    'broker.session.timeout.ms': 1_500,
    'broker.heartbeat.interval.ms': 500,
    'controller.quorum.election.timeout.ms': 100, // there is no other candidate
    // A record without content twice a second, for metrics of followers of the metadata; there is none.
    'metadata.max.idle.interval.ms': 0,
    'group.coordinator.threads': 1, // 4 by default, each with wake-ups of its own
    'num.network.threads': 1, // per listener
    'num.io.threads': 4,
    'log.cleaner.dedupe.buffer.size': 4_194_304, // 128 MB by default, allocated at the start, for millions of keys
    ...(secured === undefined ? {} : securitySettings(secured, listeners)),
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}`)
  return `${lines.join('\n')}\n`
}

/** The name of the file of `loggingProperties`, in the folder that Kafka is started in. */
export const loggingFile = 'log4j2.properties'

/** Warnings and errors on stdout, where the launcher keeps them. */
export const loggingProperties = `status = error
appender.stdout.type = Console
appender.stdout.name = stdout
appender.stdout.layout.type = PatternLayout
appender.stdout.layout.pattern = %d{ISO8601} %p %c{1} %m%n
rootLogger.level = warn
rootLogger.appenderRef.stdout.ref = stdout
`

/** The Java that runs Kafka, and the folder of Kafka's jars. */
export interface JavaFiles {
  readonly program: string
  readonly libs: string
  /** Where Java 19 and newer keep what they have read of the classes, for the next start. */
  readonly classes?: string
}

/**
 * The JVM's part of every command. C1 alone and the serial collector: 1.6 times less CPU to start, 150 MB instead of
 * 230.
 */
export function java({ program, libs, classes }: JavaFiles, heapMax: string): [string, ...string[]] {
  return [
    // Under the C locale a virtual machine cannot name a folder that has an umlaut.
    'env',
    'LC_ALL=C.UTF-8',
    program,
    '-Xms64m',
    `-Xmx${heapMax}`,
    '-XX:TieredStopAtLevel=1',
    '-XX:+UseSerialGC',
    '-XX:-UsePerfData', // sampled 20 times a second for jstat
    '-XX:+ExitOnOutOfMemoryError',
    '-Djava.awt.headless=true',
    // Two thirds of the time and 12 MB less; older ones know only the first of these.
    ...(classes === undefined
      ? []
      : ['-XX:+IgnoreUnrecognizedVMOptions', '-XX:+AutoCreateSharedArchive', `-XX:SharedArchiveFile=${classes}`]),
    `-Dlog4j2.configurationFile=${loggingFile}`,
    '-cp',
    join(libs, '*'),
  ]
}
