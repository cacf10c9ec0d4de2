import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import type { CommandContext } from '../command-context.ts'
import { findClickhouse, kafkaFrom } from '../find-servers.ts'
import { readPolicyFile } from '../read-input-file.ts'
import { openDataDir } from '../up/data-dir.ts'
import { effectivePolicy, putPolicyInForce } from '../up/effective-policy.ts'
import { type ProcessDefinition, Supervisor } from '../up/managed-process.ts'
import { choosePorts, opsPortsOf } from '../up/ports.ts'
import { readyLine, readyScreen } from '../up/ready-line.ts'
import { planServers, requirePrograms, unusedServerPorts } from '../up/servers.ts'
import { demoProcesses, serviceProcesses } from '../up/services.ts'
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
  await supervisor.stop(['upstream', 'receiver', 'kafka', 'clickhouse'])
  await supervisor.stop(['redis'])
}

/**
 * Starts everything and keeps it running until the signal; whatever fails on the way up stops all that was started. The
 * order: what can be wrong without anything running is checked first.
 */
export async function up(options: UpOptions, context: CommandContext): Promise<void> {
  const { environment, report, signal } = context
  process.umask(0o077) // inherited by all that is started: files of the servers are the owner's alone, too
  const policyText = readPolicyFile(options.policy)
  requirePolicy(policyText, options.policy)
  requireEnvironment(environment)
  requirePrograms(environment)
  const data = openDataDir(options.data)
  data.writeState({ ready: false, launcher: process.pid })
  const ports = await choosePorts(options.ports, new Set(unusedServerPorts(environment)))
  const servers = await planServers({ environment, dir: data.dir, ports, progress: report })
  const policyFile = join(data.dir, 'policy.yaml')
  const before = existsSync(policyFile) ? readFileSync(policyFile, 'utf8') : undefined
  const demo = effectivePolicy(policyText, {
    secrets: data.secrets,
    upstream: `http://127.0.0.1:${ports.upstream}`,
    receiver: `http://127.0.0.1:${ports.receiver}`,
  })
  writeFileSync(policyFile, demo.text, { mode: 0o600 })
  const opsPorts = await opsPortsOf(ports, options.ingress)

  const line = () => readyLine({ data, ports, servers, demoSubjects: demo.subjects, opsPorts, pids: supervisor.pids() })
  const onPid = () => data.writeState(line())
  const supervisor = new Supervisor(join(data.dir, 'logs'), { environment, report, onPid })
  let relay: Awaited<ReturnType<typeof servers.openRelay>> | undefined
  try {
    if (servers.processes.length > 0) report(`starting ${servers.processes.map(({ name }) => name).join(', ')} …`)
    relay = await servers.openRelay()
    await supervisor.start(servers.processes, signal)
    await createTopics(kafkaFrom({ ...environment, ...servers.kafkaVariables }, 'weir-topics'), report)
    await applyMigrations(findClickhouse(environment, servers.addresses.clickhouse), report)
    const serviceOptions = { environment, data, ports, servers, policyFile, watch: options.watch, opsPorts }
    report('starting console, ingress, metering, alerting and the demo …')
    const services = serviceProcesses(serviceOptions)
    const isConsole = ({ name }: ProcessDefinition) => name === 'console'
    await supervisor.start([...demoProcesses(serviceOptions), ...services.filter(isConsole)], signal)
    // Before the ingress, so that its first request is decided by this very policy.
    const console = { url: line().console, token: data.secrets.adminToken }
    await putPolicyInForce({ console, policy: demo, before, report })
    const others = services.filter((one) => !isConsole(one))
    await supervisor.start(others, signal)
    data.writeState(line())
    context.print(options.json ? JSON.stringify(line()) : readyScreen(line()))
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    report('stopping …')
  } finally {
    relay?.close()
    await stopInOrder(supervisor)
    data.release()
  }
  report(`stopped. The data stays in ${data.dir}`)
}
