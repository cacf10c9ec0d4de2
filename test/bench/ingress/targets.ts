import { type BenchRatio, type BenchRow, spread } from '../report.ts'
import type { Name } from './contestants.ts'
import type { Measured } from './measure.ts'

/** What a contestant cost in one round. */
export type Round = (name: Name) => Measured

const limiterCpuUs = ({ serverCpuUs, redisCpuUs }: Measured) => serverCpuUs + redisCpuUs
const rate = ({ requestsPerSecond }: Measured) => requestsPerSecond

/** CPU of the thread that runs JavaScript, over what Fastify alone takes of it. */
export function targetRows(rounds: readonly Round[]): BenchRow[] {
  const above = (label: string, name: Name, under: Name, aim = '') => ({
    label: `main thread, ${label}`,
    unit: `µs/request${aim}`,
    ...spread(rounds.map((of) => of(name).mainThreadCpuUs - of(under).mainThreadCpuUs)),
  })
  return [
    above('weir check − bare Fastify', 'check', 'bare', ' (target ≤ 15)'),
    above('weir check − the same unrecorded', 'check', 'unrecorded'),
    above('weir authorize − bare Fastify', 'authorize', 'bare'),
    above('Fastify with weirFastify − bare Fastify', 'client', 'bare'),
    above('Fastify with @fastify/rate-limit − bare Fastify', 'rateLimit', 'bare'),
    {
      label: 'CPU with Redis, weir gRPC, three limits',
      unit: 'µs/request (target ≤ 180)',
      ...spread(rounds.map((of) => limiterCpuUs(of('grpc')))),
    },
    above('weir proxy − bare http-proxy', 'proxy', 'httpProxy'),
  ]
}

/** Each of two contestants of the same round. */
export function targetRatios(rounds: readonly Round[]): BenchRatio[] {
  const ratio = (value: (one: Measured) => number) => (label: string, mine: Name, other: Name, target?: string) => ({
    label,
    ...spread(rounds.map((of) => value(of(mine)) / value(of(other)))),
    ...(target === undefined ? {} : { target }),
  })
  const cpu = ratio(limiterCpuUs)
  const throughput = ratio(rate)
  return [
    cpu('CPU with Redis, weir check / rate-limit', 'check', 'rateLimit', '≤ 1.15'),
    cpu('CPU with Redis, unrecorded / rate-limit', 'unrecorded', 'rateLimit'),
    cpu('CPU with Redis, weir authorize / rate-limit', 'authorize', 'rateLimit', '≤ 1.15'),
    cpu('CPU with Redis, weir gRPC recorded / envoyproxy/ratelimit', 'grpc', 'reference'),
    cpu('CPU with Redis, weirFastify and weir / rate-limit', 'client', 'rateLimit'),
    cpu('CPU with Redis, weir three limits / Union of three', 'checkThree', 'union'),
    cpu('CPU with Redis, weir proxy / http-proxy with rate-limit', 'proxy', 'limitedProxy'),
    throughput('requests/s, weir check / rate-limit', 'check', 'rateLimit', '≥ 0.8'),
    throughput('requests/s, unrecorded / rate-limit', 'unrecorded', 'rateLimit', '≥ 1.0'),
    throughput('requests/s, weir authorize / rate-limit', 'authorize', 'rateLimit', '≥ 0.8'),
    throughput('requests/s, weir gRPC recorded / envoyproxy/ratelimit', 'grpc', 'reference'),
    throughput('requests/s, weirFastify and weir / rate-limit', 'client', 'rateLimit'),
    throughput('requests/s, weir three limits / Union of three', 'checkThree', 'union', '≥ 1.4'),
    throughput('requests/s, weir proxy / bare http-proxy', 'proxy', 'httpProxy', '≥ 0.85'),
    throughput('requests/s, proxy unrecorded / bare http-proxy', 'proxyUnrecorded', 'httpProxy'),
    throughput('requests/s, weir proxy / http-proxy with rate-limit', 'proxy', 'limitedProxy'),
  ]
}
