import { WeirError } from '@weir/core/errors.ts'
import { freePorts, isPortFree } from '@weir/runtime/ports.ts'

/**
 * The default ports. The servers' ports are not their usual ones, so that they do not collide with a Redis or Kafka
 * that already runs here.
 */
const defaultPorts = {
  ingress: 8080,
  api: 8081,
  grpc: 8082,
  console: 8090,
  ingressOps: 9101,
  meteringOps: 9102,
  alertingOps: 9103,
  consoleOps: 9104,
  upstream: 8070,
  receiver: 8071,
  redis: 16379,
  kafka: 19092,
  kafkaController: 19093,
  kafkaOpen: 19094,
  kafkaSecured: 19095,
  clickhouse: 18123,
} as const

/** What a port is for. */
export type PortName = keyof typeof defaultPorts
/** The port of everything that listens. */
export type Ports = Readonly<Record<PortName, number>>

const names = Object.keys(defaultPorts) as PortName[]

/** Returns free ports for everything, or the fixed ones if they are free. Ports of `unused` are not checked. */
export async function choosePorts(mode: 'auto' | 'fixed', unused: ReadonlySet<PortName>): Promise<Ports> {
  if (mode === 'auto') {
    const free = await freePorts(names.length)
    return Object.fromEntries(names.map((name, index) => [name, free[index] ?? 0])) as Record<PortName, number>
  }
  const wanted = names.filter((name) => !unused.has(name))
  const taken = (
    await Promise.all(wanted.map(async (name) => ((await isPortFree(defaultPorts[name])) ? [] : [name])))
  ).flat()
  if (taken.length > 0) {
    const list = taken.map((name) => `${defaultPorts[name]} (${name})`).join(', ')
    const message = `Another program listens on port ${list}. Stop it, or let free ports be chosen: ./weir up --ports auto`
    throw new WeirError('PORT_IN_USE', message)
  }
  return defaultPorts
}

/** Chooses the ops port of every process: the first ingress process has the usual port, further ones free ports. */
export async function opsPortsOf(ports: Ports, ingressProcesses: number): Promise<Record<string, number>> {
  const more = await freePorts(ingressProcesses - 1)
  return {
    ingress: ports.ingressOps,
    ...Object.fromEntries(more.map((port, index) => [`ingress-${index + 2}`, port])),
    metering: ports.meteringOps,
    alerting: ports.alertingOps,
    console: ports.consoleOps,
  }
}
