import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { WeirError } from '@weir/core/errors.ts'
import { clickhouseServer } from '@weir/local-clickhouse/clickhouse-server.ts'
import { securedKafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { inLines } from '@weir/local-programs/fetch-progress.ts'
import { findPrograms, ProgramMissing } from '@weir/local-programs/find-program.ts'
import type { NativeServer } from '@weir/local-programs/native-server.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { listenAsUs } from '@weir/runtime/listens-as-us.ts'
import type { Environment } from '@weir/runtime/read-config.ts'
import { readSecretFile } from '@weir/runtime/secret.ts'
import { isGiven, localKafka } from '../find-servers.ts'
import type { ProcessDefinition } from './managed-process.ts'
import type { PortName, Ports } from './ports.ts'

interface ServerChoice {
  readonly server: NativeServer
  /** The variable that, when set, names a server which already runs. */
  readonly variable: string
  readonly ports: readonly PortName[]
}

const choices: readonly ServerChoice[] = [
  { server: redisServer, variable: 'WEIR_REDIS_URL', ports: ['redis'] },
  {
    server: securedKafkaServer,
    variable: 'WEIR_KAFKA_BROKERS',
    ports: ['kafka', 'kafkaController', 'kafkaOpen', 'kafkaSecured'],
  },
  { server: clickhouseServer, variable: 'WEIR_CLICKHOUSE_URL', ports: ['clickhouse'] },
]

/** A first start of Kafka or ClickHouse takes seconds; a machine that is busy installing may need many times that. */
const startDeadlineMs = 90_000

const ours = (environment: Environment) => choices.filter(({ variable }) => !isGiven(environment, variable))

/** Returns the ports of the servers that the environment names: this `weir up` does not run those. */
export const unusedServerPorts = (environment: Environment): PortName[] =>
  choices.filter(({ variable }) => isGiven(environment, variable)).flatMap(({ ports }) => ports)

/** A hanging daemon must not hold up a message about a missing program. */
const dockerMs = 3_000

/** Returns whether a Docker engine answers. */
function hasDocker(environment: Environment): boolean {
  const env = { ...environment } as NodeJS.ProcessEnv
  return spawnSync('docker', ['info'], { stdio: 'ignore', timeout: dockerMs, env }).status === 0
}

/**
 * Finds or fetches every program that is needed. Names all that are missing in one error, with what installs them and
 * the variable for a server that runs: by Docker where an engine does.
 */
export async function requirePrograms(environment: Environment, progress: (line: string) => void): Promise<void> {
  try {
    const needs = ours(environment).flatMap(({ server }) => server.needs)
    await findPrograms(needs, { environment, tell: inLines(progress) })
  } catch (error) {
    if (!(error instanceof ProgramMissing)) throw error
    const { missing } = error
    const servers = ours(environment).filter(({ server }) => server.needs.some((one) => missing.includes(one)))
    const isDocker = hasDocker(environment)
    const lines = servers.map(({ server: { docker } }) =>
      isDocker
        ? `or in Docker: ${docker.command} && export ${docker.env}`
        : `or a server that runs: export ${docker.env}`,
    )
    const all = [error.message, ...lines]
    throw new WeirError('PROGRAM_MISSING', `Programs are missing.\n${all.join('\n')}`.replaceAll('\n', '\n  '), error)
  }
}

/** Prepares the data of the servers that this `weir up` runs, and defines their processes. */
export async function planServers(options: {
  readonly environment: Environment
  readonly dir: string
  readonly ports: Ports
  readonly progress: (line: string) => void
}) {
  const { environment, dir, ports, progress } = options
  const planned = await Promise.all(
    ours(environment).map(async ({ server, ports: names }) => {
      const own = names.map((name) => ports[name])
      const plan = await server.plan({ dir: join(dir, server.name), ports: own, progress, environment })
      // The ready check and every later client send passwords, so the port must be our own server's.
      let isOurs = false
      const ready = async () => {
        isOurs ||= await listenAsUs(own)
        return isOurs && plan.ready()
      }
      return { name: server.name, startDeadlineMs, ...plan, ready }
    }),
  )
  const address = (name: NativeServer['name']) => {
    const variable = choices.find(({ server }) => server.name === name)?.variable ?? ''
    const file = environment[`${variable}_FILE`]
    if (file) return readSecretFile(file)
    return environment[variable] || (planned.find((one) => one.name === name)?.address ?? '')
  }
  const kafka = planned.find(({ login }) => login !== undefined)
  return {
    /** The login of our own Kafka; null for one that the environment names. */
    kafkaUsername: kafka?.login?.username ?? null,
    kafkaPassword: kafka?.login?.password ?? null,
    /** Variables by which services and commands reach Kafka, instead of those of the environment. */
    kafkaVariables: kafka?.login === undefined ? {} : localKafka(kafka.login),
    /** Opens the relay at the address that clients of our Kafka get; the caller closes it when Kafka stops. */
    openRelay: async () => (await kafka?.openRelay?.()) ?? { close: () => undefined },
    /** The three addresses, given or ours. */
    addresses: { redis: address('redis'), kafka: address('kafka'), clickhouse: address('clickhouse') },
    /** Those that we run. */
    processes: planned satisfies readonly ProcessDefinition[],
  }
}

/** The servers of a `weir up`: its own, and those that the environment names. */
export type Servers = Awaited<ReturnType<typeof planServers>>
