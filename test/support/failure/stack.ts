import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { applyMigrations } from '@weir/cli/commands/migrate.ts'
import { createTopics } from '@weir/cli/commands/topics.ts'
import { findClickhouse, kafkaFrom } from '@weir/cli/find-servers.ts'
import { projectRoot } from '@weir/cli/project.ts'
import { openDataDir, type Secrets } from '@weir/cli/up/data-dir.ts'
import { effectivePolicy, putPolicyInForce } from '@weir/cli/up/effective-policy.ts'
import type { ProcessDefinition } from '@weir/cli/up/managed-process.ts'
import { choosePorts, opsPortsOf, type Ports } from '@weir/cli/up/ports.ts'
import { planServers } from '@weir/cli/up/servers.ts'
import { demoProcess, serviceProcesses } from '@weir/cli/up/services.ts'
import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { freePorts } from '@weir/runtime/ports.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { endOfFile, keepLog } from '../servers/server-logs.ts'
import { failurePolicy } from './failure-policy.ts'
import { isLarge } from './is-large.ts'
import { planLarge } from './large-topology.ts'
import { StackPart } from './stack-part.ts'

/** A killed part is started again within 5 s (managed-process.ts) and may need half a minute on a busy machine. */
const backDeadlineMs = 90_000

export interface StackOptions {
  /** One process of each service in the large topology, too: the test does something to that one. */
  readonly oneOfEach?: boolean
  /** Ingress processes that share their ports and their journal directory; named `ingress`, `ingress-2` and so on. */
  readonly ingress?: number
  /** Metering processes beside the first; named `metering-2` and so on. */
  readonly moreMetering?: number
  /** For every service; the group's session is 6 s unless it says otherwise. */
  readonly environment?: Readonly<Record<string, string>>
  /** The checkout that its services are started from; else this one. */
  readonly root?: string
  /** The text of its policy; else `failurePolicy`. */
  readonly policy?: string
  /** Called with the empty data directory, before anything is started on it; and before it is removed. */
  readonly onDir?: (dir: string) => void
  readonly beforeRemoval?: () => void
}

/**
 * All of Weir as `./weir up` runs it, every part a process of its own that can be killed, held, and started again
 * otherwise. With `WEIR_TEST_TOPOLOGY=ha` Kafka is `kafka-1` to `kafka-3`, Redis `redis-1` to `redis-6`, and their
 * names without a number mean all of them.
 */
export interface Stack {
  readonly dir: string
  readonly ports: Ports
  readonly addresses: { readonly redis: string; readonly kafka: string; readonly clickhouse: string }
  /** Of the environment of its services, where Kafka is its own. */
  readonly kafkaVariables: Readonly<Record<string, string>>
  /** As the user with all rights. */
  readonly kafka: KafkaOptions
  readonly secrets: Secrets
  readonly names: readonly string[]
  pid(name: string): number | undefined
  opsAddress(name: string): string
  /** Sends a signal to its process. After SIGKILL it is started again by itself, as in production. */
  signal(name: string, signal: NodeJS.Signals): void
  /**
   * Kills it now. At each of its next starts it gets the more variables that are next; when they are at an end all is
   * as ever.
   */
  killInto(name: string, environments: readonly Readonly<Record<string, string>>[]): void
  /** Waits until it does its work again, in another process than `before`. */
  backAfter(name: string, before: number | undefined): Promise<void>
  /** Kills it and keeps it down. */
  hold(name: string): Promise<void>
  /** Stops it as a service manager does, and keeps it down. */
  stop(name: string): Promise<void>
  /** Stops a service as a service manager does, and starts it from another checkout of Weir. */
  moveTo(name: string, root: string): Promise<void>
  /** Starts what was held or stopped. */
  release(name: string): Promise<void>
  /** What the supervisor said, a line per death. */
  readonly said: readonly string[]
  /** Stops all, and removes the data unless it is to be looked at (`WEIR_TEST_KEEP`). */
  close(): Promise<void>
}

/** The same program of another checkout, by the Node that its launcher put there. */
function fromTree(part: ProcessDefinition, root: string): ProcessDefinition {
  if (part.cwd === root) return part
  const args = part.command.slice(1).map((text) => text.replace(part.cwd, root))
  return { ...part, command: [join(root, 'node_modules/node/bin/node'), ...args], cwd: root }
}

/** More processes of a service, each as the first but for its ops port and what it keeps of the policy. */
async function moreOf(parts: readonly ProcessDefinition[], name: string, count: number) {
  const first = parts.find((part) => part.name === name)
  if (first === undefined || count === 0) return []
  return (await freePorts(count)).map((port, index) => {
    const own = `${name}-${index + 2}`
    const snapshot = `${first.env.WEIR_POLICY_SNAPSHOT}-${own}`
    const ready = async () => (await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined))?.status === 200
    const env = { ...first.env, WEIR_OPS_PORT: String(port), WEIR_POLICY_SNAPSHOT: snapshot }
    return { port, part: { ...first, name: own, env, ready } }
  })
}

/** What is decided before anything runs. */
async function planStack(options: StackOptions) {
  const dir = mkdtempSync(join(tmpdir(), 'weir-failure-'))
  /** Of each service, unless a test says otherwise. */
  const usual = isLarge && options.oneOfEach !== true ? 2 : 1
  const given = { ...process.env, WEIR_KAFKA_SESSION_MS: '6000', ...options.environment }
  options.onDir?.(dir)
  const data = openDataDir(dir)
  const said: string[] = []
  const report = (line: string) => void said.push(`${new Date().toISOString()} ${line}`)
  const ports = await choosePorts('auto', new Set())
  const large = isLarge ? await planLarge({ environment: given, dir, progress: report }) : undefined
  const environment = { ...given, ...large?.variables }
  const servers = await planServers({ environment, dir, ports, progress: report })
  const origins = { upstream: `http://127.0.0.1:${ports.upstream}`, receiver: `http://127.0.0.1:${ports.receiver}` }
  const policy = effectivePolicy(options.policy ?? failurePolicy(), { secrets: data.secrets, ...origins })
  const policyFile = join(dir, 'policy.yaml')
  writeFileSync(policyFile, policy.text)
  const opsPorts = await opsPortsOf(ports, options.ingress ?? usual)
  const serviceOptions = { environment, data, ports, servers, policyFile, watch: false, opsPorts }
  const services = serviceProcesses(serviceOptions).map((part) => fromTree(part, options.root ?? projectRoot))
  const more = [
    ...(await moreOf(services, 'metering', options.moreMetering ?? usual - 1)),
    ...(await moreOf(services, 'alerting', usual - 1)),
  ]
  for (const { part, port } of more) opsPorts[part.name] = port
  const demo = demoProcess(serviceOptions)
  const withKafka = { ...environment, ...servers.kafkaVariables }
  const kafka = kafkaFrom(withKafka, 'failure-suite')
  return {
    dir,
    environment,
    data,
    said,
    report,
    ports,
    servers,
    kafka,
    withKafka,
    policy,
    opsPorts,
    demo,
    services,
    more,
    large,
  }
}

type Plan = Awaited<ReturnType<typeof planStack>>

/** In the order of `./weir up`: what others need starts first. */
async function startParts(plan: Plan, start: (parts: readonly ProcessDefinition[]) => Promise<void>): Promise<void> {
  const { servers, report, ports, data, policy, demo, services, more, large } = plan
  await start([...servers.processes, ...(large?.processes ?? [])])
  await large?.join()
  await createTopics(kafkaFrom(plan.withKafka, 'weir-topics'), report)
  await applyMigrations(findClickhouse(plan.withKafka, servers.addresses.clickhouse), report)
  const isConsole = ({ name }: ProcessDefinition) => name === 'console'
  await start([demo, ...services.filter(isConsole)])
  const console = { url: `http://127.0.0.1:${ports.console}`, token: data.secrets.adminToken }
  await putPolicyInForce({ console, policy, before: undefined, report })
  await start([...services.filter((part) => !isConsole(part)), ...more.map(({ part }) => part)])
}

/** Starts all of it on free ports and empty data. */
export async function startStack(options: StackOptions = {}): Promise<Stack> {
  const plan = await planStack(options)
  const { dir, environment, data, said, report, ports, servers, opsPorts } = plan
  const stopping = new AbortController()
  const parts = new Map<string, StackPart>()
  const keptEnds: (() => void)[] = []
  const start = async (base: ProcessDefinition) => {
    const logFile = join(dir, 'logs', `${base.name}.log`)
    keptEnds.push(keepLog(base.name, () => endOfFile(logFile)))
    const part = new StackPart(base, { logFile, environment, report, onPid: () => undefined })
    parts.set(base.name, part)
    await part.start(stopping.signal)
  }
  const get = (name: string): readonly StackPart[] => {
    const part = parts.get(name)
    const found = part ? [part] : [...parts.values()].filter(({ base }) => base.name.startsWith(`${name}-`))
    if (found.length === 0) throw new Error(`the stack has no ${name}, but ${[...parts.keys()].join(', ')}`)
    return found
  }
  // Before Kafka, as `./weir up` does: it is ready only when all its ports are ours.
  const relay = await servers.openRelay()
  const close = async () => {
    stopping.abort()
    relay.close()
    await Promise.all([...parts].filter(([name]) => name.startsWith('ingress')).map(([, part]) => part.stop()))
    // Brokers that all end at once would each wait for the others.
    for (const { name } of plan.large?.processes ?? []) parts.get(name)?.kill('SIGKILL')
    await Promise.all([...parts.values()].map((part) => part.stop()))
    data.release()
    for (const keepEnd of keptEnds) keepEnd()
    options.beforeRemoval?.()
    if (!process.env.WEIR_TEST_KEEP) rmSync(dir, { recursive: true, force: true })
  }
  try {
    await startParts(plan, async (bases) => void (await Promise.all(bases.map(start))))
  } catch (error) {
    await close()
    throw error
  }
  return {
    dir,
    ports,
    addresses: servers.addresses,
    kafkaVariables: servers.kafkaVariables,
    kafka: plan.kafka,
    secrets: data.secrets,
    names: [...parts.keys()],
    said,
    pid: (name) => get(name)[0]?.pid,
    opsAddress: (name) => `http://127.0.0.1:${opsPorts[name] ?? 0}`,
    signal(name, signal) {
      for (const part of get(name)) part.kill(signal)
    },
    killInto(name, environments) {
      for (const part of get(name)) part.killInto(environments)
    },
    async backAfter(name, before) {
      const isBack = async () => (await Promise.all(get(name).map((part) => part.isBackAfter(before)))).every(Boolean)
      const back = await waitUntil(isBack, { deadlineMs: backDeadlineMs })
      if (back !== true) throw new Error(`${name} did not come back: ${said.slice(-5).join('\n')}`)
    },
    async moveTo(name, root) {
      for (const part of get(name)) await part.replace(fromTree(part.base, root), stopping.signal)
    },
    hold: async (name) => void (await Promise.all(get(name).map((part) => part.hold()))),
    stop: async (name) => void (await Promise.all(get(name).map((part) => part.stop()))),
    release: async (name) => void (await Promise.all(get(name).map((part) => part.release(stopping.signal)))),
    close,
  }
}
