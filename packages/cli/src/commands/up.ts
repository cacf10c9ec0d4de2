import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { releaseStartMemory } from '@weir/runtime/release-memory.ts'
import type { CommandContext } from '../command-context.ts'
import { findClickhouse, kafkaFrom } from '../find-servers.ts'
import { readPolicyFile } from '../read-input-file.ts'
import { rememberUp } from '../running-up.ts'
import { openDataDir } from '../up/data-dir.ts'
import { effectivePolicy, putPolicyInForce } from '../up/effective-policy.ts'
import { type ProcessDefinition, Supervisor } from '../up/managed-process.ts'
import { choosePorts, opsPortsOf } from '../up/ports.ts'
import { readyLine, readyScreen } from '../up/ready-line.ts'
import { planServers, requirePrograms, type Servers, unusedServerPorts } from '../up/servers.ts'
import { demoProcess, type ServiceOptions, serviceProcesses } from '../up/services.ts'
import { StartTimings } from '../up/start-timings.ts'
import { requireEnvironment } from './check.ts'
import { applyMigrations } from './migrate.ts'
import { createTopics } from './topics.ts'

/** The options of `weir up`. */
export interface UpOptions {
  readonly policy: string
  readonly data: string
  readonly ports: 'fixed' | 'auto'
  readonly ingress: number
  readonly json: boolean
  readonly watch: boolean
  /** Report what the start spent its time on. */
  readonly timings: boolean
}

/** Runs steps concurrently. If one fails, the waits of the others end; it rejects once all have ended. */
async function concurrently(signal: AbortSignal, run: (signal: AbortSignal) => readonly Promise<unknown>[]) {
  const failure = new AbortController()
  const steps = run(AbortSignal.any([signal, failure.signal]))
  await Promise.all(steps.map((step) => step.catch((error: unknown) => failure.abort(error))))
  failure.signal.throwIfAborted()
}

/** Programs, files, servers, topics, tables, demo, policy, console, metering, alerting, and each ingress. */
const startSteps = (servers: number, ingress: number) => servers + ingress + 9

/** Starts everything: the servers with their topics and tables, then the services, the ingress after a new policy. */
async function startInOrder(options: {
  readonly supervisor: Supervisor
  readonly timings: StartTimings
  readonly signal: AbortSignal
  readonly context: CommandContext
  readonly servers: Servers
  readonly services: ServiceOptions
  readonly isPolicyNew: boolean
  readonly putPolicyInForce: () => Promise<void>
}): Promise<void> {
  const { supervisor, timings, signal, servers, services, putPolicyInForce: putPolicy } = options
  const { environment, report } = options.context
  const start = (processes: readonly ProcessDefinition[], until: AbortSignal) =>
    Promise.all(processes.map((one) => timings.measure(one.name, () => supervisor.start([one], until))))
  const kafka = kafkaFrom({ ...environment, ...servers.kafkaVariables }, 'weir-topics')
  const clickhouse = findClickhouse(environment, servers.addresses.clickhouse)
  const named = (name: string) => servers.processes.filter((one) => one.name === name)
  // Each server is prepared as soon as it runs; the demo needs none of them.
  await concurrently(signal, (until) => [
    start([...named('redis'), demoProcess(services)], until),
    start(named('kafka'), until).then(() => timings.measure('topics', () => createTopics(kafka, report))),
    start(named('clickhouse'), until).then(() => timings.measure('tables', () => applyMigrations(clickhouse, report))),
  ])
  report('starting console, ingress, metering and alerting …')
  const {
    console = [],
    ingress = [],
    readers = [],
  } = Object.groupBy(serviceProcesses(services), ({ name }) =>
    name === 'console' ? 'console' : name.startsWith('ingress') ? 'ingress' : 'readers',
  )
  await concurrently(signal, (until) => {
    const inForce = start(console, until).then(() => timings.measure('policy', putPolicy))
    // A new policy before the ingress, so that its first request is decided by this very policy.
    const mayDecide = options.isPolicyNew ? inForce : Promise.resolve()
    return [inForce, mayDecide.then(() => start(ingress, until)), start(readers, until)]
  })
}

/**
 * Stops in the order in which nothing is lost: the ingress first, then the services that process its records, servers
 * last.
 */
async function stopInOrder(supervisor: Supervisor): Promise<void> {
  const names = Object.keys(supervisor.pids())
  const ingress = names.filter((name) => name.startsWith('ingress'))
  await supervisor.stop(ingress)
  await supervisor.stop(['metering', 'alerting', 'console'])
  await supervisor.stop(['demo', 'kafka', 'clickhouse'])
  await supervisor.stop(['redis'])
}

/**
 * Starts everything and keeps it running until the signal; whatever fails on the way up stops all that was started. The
 * order: what can be wrong without anything running is checked first.
 */
export async function up(options: UpOptions, context: CommandContext): Promise<void> {
  const { environment, report, signal } = context
  let steps: number | undefined
  const timings = new StartTimings((running, ended) =>
    context.progress.tell(running.join(', '), steps === undefined ? undefined : ended / steps),
  )
  process.umask(0o077) // inherited by all that is started: files of the servers are the owner's alone, too
  const policyText = readPolicyFile(options.policy)
  requirePolicy(policyText, options.policy, report)
  requireEnvironment(environment)
  await timings.measure('programs', () => requirePrograms(environment, report))
  const data = openDataDir(options.data)
  data.writeState({ ready: false, launcher: process.pid })
  rememberUp(data.dir)
  const ports = await choosePorts(options.ports, new Set(unusedServerPorts(environment)))
  const servers = await timings.measure('files of the servers', () =>
    planServers({ environment, dir: data.dir, ports, progress: report }),
  )
  steps = startSteps(servers.processes.length, options.ingress)
  const policyFile = join(data.dir, 'policy.yaml')
  const before = existsSync(policyFile) ? readFileSync(policyFile, 'utf8') : undefined
  const demo = effectivePolicy(policyText, {
    secrets: data.secrets,
    upstream: `http://127.0.0.1:${ports.upstream}`,
    receiver: `http://127.0.0.1:${ports.receiver}`,
  })
  // Until it is in force, also if this start fails.
  const notInForce = join(data.dir, 'policy.new')
  if (before !== demo.text) writeFileSync(notInForce, '')
  writeFileSync(policyFile, demo.text, { mode: 0o600 })
  const opsPorts = await opsPortsOf(ports, options.ingress)

  const line = () => readyLine({ data, ports, servers, demoSubjects: demo.subjects, opsPorts, pids: supervisor.pids() })
  const variables = Object.keys(environment)
  const onPid = () => data.writeState({ ...line(), variables, policy: options.policy })
  const supervisor = new Supervisor(join(data.dir, 'logs'), { environment, report, onPid })
  let relay: Awaited<ReturnType<typeof servers.openRelay>> | undefined
  try {
    if (servers.processes.length > 0) report(`starting ${servers.processes.map(({ name }) => name).join(', ')} …`)
    relay = await servers.openRelay()
    const console = { url: line().console, token: data.secrets.adminToken }
    await startInOrder({
      supervisor,
      timings,
      signal,
      context,
      servers,
      services: { environment, data, ports, servers, policyFile, watch: options.watch, opsPorts },
      isPolicyNew: existsSync(notInForce),
      putPolicyInForce: () =>
        putPolicyInForce({ console, policy: demo, before, report }).then(() => rmSync(notInForce, { force: true })),
    })
    onPid()
    if (options.timings) for (const step of timings.lines()) report(step)
    context.progress.end()
    context.print(options.json ? JSON.stringify(line()) : readyScreen(line()))
    await releaseStartMemory()
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    report('stopping …')
  } finally {
    relay?.close()
    await stopInOrder(supervisor)
    data.release()
  }
  report(`stopped. The data is kept in ${data.dir}`)
}
