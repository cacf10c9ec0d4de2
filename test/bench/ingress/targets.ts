import { type BenchRatio, type BenchRow, spread } from '../report.ts'
import type { Name } from './contestants.ts'
import type { Measured } from './measure.ts'
import type { Round } from './turns.ts'

/** A figure of two contestants, of each round that has both. */
const pairs = (rounds: readonly Round[], mine: Name, other: Name, of: (a: Measured, b: Measured) => number) =>
  spread(
    rounds.flatMap((round) => {
      const [a, b] = [round.get(mine), round.get(other)]
      return a === undefined || b === undefined ? [] : of(a, b)
    }),
  )

const limiterCpuUs = ({ serverCpuUs, redisCpuUs }: Measured) => serverCpuUs + redisCpuUs
const rate = ({ requestsPerSecond }: Measured) => requestsPerSecond

/** CPU of the thread that runs JavaScript, over what Fastify alone takes of it. */
export function targetRows(rounds: readonly Round[]): BenchRow[] {
  const above = (label: string, name: Name, under: Name, aim = '') => ({
    label: `main thread, ${label}`,
    unit: `µs/request${aim}`,
    ...pairs(rounds, name, under, (a, b) => a.mainThreadCpuUs - b.mainThreadCpuUs),
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
      ...pairs(rounds, 'grpc', 'grpc', limiterCpuUs),
    },
    above('weir proxy − bare http-proxy', 'proxy', 'httpProxy'),
  ]
}

/** Each of two contestants of the same round. */
export function targetRatios(rounds: readonly Round[]): BenchRatio[] {
  const ratio = (value: (one: Measured) => number) => (label: string, mine: Name, other: Name, target?: string) => ({
    label,
    ...pairs(rounds, mine, other, (a, b) => value(a) / value(b)),
    ...(target === undefined ? {} : { target }),
  })
  const cpu = ratio(limiterCpuUs)
  const throughput = ratio(rate)
  return [
    cpu('CPU with Redis, weir check / rate-limit', 'check', 'rateLimit'),
    cpu('CPU with Redis, weir check coalesced / rate-limit', 'checkCoalesced', 'rateLimit', '≤ 0.85'),
    cpu('CPU with Redis, unrecorded / rate-limit', 'unrecorded', 'rateLimit'),
    cpu('CPU with Redis, weir authorize / rate-limit', 'authorize', 'rateLimit', '≤ 1.15'),
    cpu('CPU with Redis, weir authorize coalesced / rate-limit', 'authorizeCoalesced', 'rateLimit'),
    cpu('CPU with Redis, weir gRPC recorded / envoyproxy/ratelimit', 'grpc', 'reference', '≤ 0.7'),
    cpu('CPU with Redis, weir gRPC coalesced / envoyproxy/ratelimit', 'grpcCoalesced', 'reference'),
    cpu('CPU with Redis, weirFastify and weir / rate-limit', 'client', 'rateLimit', '≤ 1.5'),
    cpu('CPU with Redis, weir three limits / Union of three', 'checkThree', 'union', '≤ 0.5'),
    cpu('CPU with Redis, weir three limits coalesced / Union of three', 'threeCoalesced', 'union', '≤ 0.5'),
    cpu('CPU with Redis, weir proxy / http-proxy with rate-limit', 'proxy', 'limitedProxy'),
    cpu('CPU with Redis, weir proxy coalesced / http-proxy with rate-limit', 'proxyCoalesced', 'limitedProxy'),
    throughput('requests/s, weir check / rate-limit', 'check', 'rateLimit'),
    throughput('requests/s, weir check coalesced / rate-limit', 'checkCoalesced', 'rateLimit', '≥ 1.2'),
    throughput('requests/s, unrecorded / rate-limit', 'unrecorded', 'rateLimit', '≥ 1.0'),
    throughput('requests/s, weir authorize / rate-limit', 'authorize', 'rateLimit', '≥ 0.8'),
    throughput('requests/s, weir authorize coalesced / rate-limit', 'authorizeCoalesced', 'rateLimit'),
    throughput('requests/s, weir gRPC recorded / envoyproxy/ratelimit', 'grpc', 'reference', '≥ 1.3'),
    throughput('requests/s, weir gRPC coalesced / envoyproxy/ratelimit', 'grpcCoalesced', 'reference'),
    throughput('requests/s, weirFastify and weir / rate-limit', 'client', 'rateLimit'),
    throughput('requests/s, weir three limits / Union of three', 'checkThree', 'union', '≥ 1.8'),
    throughput('requests/s, weir three limits coalesced / Union of three', 'threeCoalesced', 'union', '≥ 1.5'),
    throughput('requests/s, weir proxy / bare http-proxy', 'proxy', 'httpProxy'),
    throughput('requests/s, weir proxy coalesced / bare http-proxy', 'proxyCoalesced', 'httpProxy', '≥ 0.85'),
    throughput('requests/s, proxy unrecorded / bare http-proxy', 'proxyUnrecorded', 'httpProxy'),
    throughput('requests/s, weir proxy / http-proxy with rate-limit', 'proxy', 'limitedProxy', '≥ 1.2'),
    throughput('requests/s, weir proxy coalesced / http-proxy with rate-limit', 'proxyCoalesced', 'limitedProxy'),
  ]
}
