import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { nightlyTiers } from './test/runner/tiers.ts'
import { isLarge } from './test/support/failure/is-large.ts'
import { testEnvironment } from './test/support/programs/environment.ts'
import { givenEnv, isGiven } from './test/support/servers/given-clickhouse.ts'

/** Tests wait for servers and for clocks more than they compute: at any time more workers than there are cores. */
const maxWorkers = availableParallelism() + 1
/** Tests of servers mostly wait. */
const maxWaiting = availableParallelism() + 2

/** Tests start services and commands hundreds of times, from the same sources. */
const env = {
  NODE_COMPILE_CACHE: resolve(import.meta.dirname, '.weir/compile-cache'),
  // Commands write moments in the zone of who reads them.
  TZ: 'UTC',
  ...testEnvironment,
  ...givenEnv,
}

/** Needs three brokers, a Redis Cluster, and two of each service (test/README.md). */
const largeOnly = isLarge ? [] : ['test/failure/ha.test.ts']
/** Removes the data of a server of which there is one. */
const smallOnly = isLarge ? ['test/failure/restore.test.ts'] : []

type Server = 'redis' | 'kafka' | 'clickhouse'

interface TierOptions {
  readonly include: string[]
  readonly exclude?: string[]
  readonly timeoutMs: number
  /** Started once for the tier. */
  readonly servers?: readonly Server[]
  /** What else is started once for the tier: a file. */
  readonly setup?: string
  /** Files at once; 1 for those that take all cores, kill what others use, or hold times to the millisecond. */
  readonly maxWorkers: number
  /** True where files mock modules: else a worker keeps those that it has loaded for the next file. */
  readonly isolate?: boolean
  /** Projects of different numbers of workers run one after another, in this order. */
  readonly groupOrder: number
}

/** A project per tier, and two for a tier with files that run alone (test/README.md). */
const tier = (name: string, options: TierOptions) => ({
  test: {
    name,
    include: options.include,
    exclude: ['**/node_modules/**', ...(options.exclude ?? [])],
    testTimeout: options.timeoutMs,
    hookTimeout: options.timeoutMs,
    // A condition that will hold may take seconds on a busy machine, for which vitest's own second is too short.
    expect: { poll: { timeout: 10_000 } },
    env,
    maxWorkers: options.maxWorkers,
    isolate: options.isolate ?? false,
    sequence: { groupOrder: options.groupOrder },
    globalSetup: options.setup ?? (options.servers ?? []).map((server) => `test/support/servers/provide-${server}.ts`),
    setupFiles: ['unit', 'repo', 'packaging', 'docker'].includes(name) ? [] : ['test/support/report-failure.ts'],
  },
})

const all: readonly Server[] = ['redis', 'kafka', 'clickhouse']

/** Files of the tier `servers` that need the machine for themselves. */
const alone = [
  'test/servers/admin/keys-in-force.test.ts', // holds the time until a key is in force
  'test/servers/admin/large-file.test.ts', // holds the time of answers while a core is busy
  'test/servers/floods.test.ts', // sends as much as it can
  'test/servers/policy/edits-under-load.test.ts', // holds the time until an edit is in force
  'test/servers/proxy/gigabytes.test.ts', // sends as much as it can
  'test/servers/redis/cluster.test.ts', // holds deadlines to the millisecond
  'test/servers/redis/sentinel.test.ts', // the same
]

/** Files of a minute and more: were they to begin last, each would run alone at the end. */
const longest = [
  'test/nightly/rights/clickhouse.test.ts',
  'test/servers/docs/commands.test.ts',
  'test/nightly/rights/kafka.test.ts',
  'test/servers/metering/faults.test.ts',
  'test/servers/client/outbound-limit.test.ts',
  'test/nightly/stand-ins/kafka.test.ts',
  'test/servers/admin/weir-up.test.ts',
  'test/nightly/tls/proxy.test.ts',
  'test/servers/alerting/resolved-processes.test.ts',
]

/** In a new checkout vitest knows only how large each file is. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) => longest.some((path) => moduleId.endsWith(`/${path}`))
    const sorted = await super.sort(files)
    return [...sorted.filter(isLong), ...sorted.filter((one) => !isLong(one))]
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    projects: [
      tier('unit', {
        include: ['{packages,services,infra}/**/*.test.ts'],
        timeoutMs: 20_000,
        maxWorkers,
        groupOrder: 1,
      }),
      tier('lua', {
        include: ['test/lua/**/*.test.ts'],
        timeoutMs: 60_000,
        servers: ['redis'],
        maxWorkers: maxWaiting,
        groupOrder: 2,
      }),
      tier('servers', {
        include: ['test/servers/**/*.test.ts'],
        exclude: alone,
        timeoutMs: 120_000,
        servers: all,
        maxWorkers: isGiven ? 1 : maxWaiting,
        groupOrder: isGiven ? 3 : 2,
      }),
      tier('servers-alone', { include: alone, timeoutMs: 120_000, servers: all, maxWorkers: 1, groupOrder: 3 }),
      ...nightlyTiers.map((name) =>
        tier(name, {
          include: [`test/nightly/${name}/**/*.test.ts`],
          timeoutMs: 120_000,
          servers: all,
          maxWorkers: isGiven ? 1 : maxWaiting,
          groupOrder: isGiven ? 3 : 2,
          isolate: name === 'tls',
        }),
      ),
      tier('smoke', {
        include: ['test/smoke/**/*.test.ts'],
        timeoutMs: 300_000,
        setup: 'test/support/provide-weir.ts',
        maxWorkers: 1,
        groupOrder: 4,
      }),
      tier('browser', { include: ['test/browser/**/*.test.ts'], timeoutMs: 120_000, maxWorkers: 1, groupOrder: 5 }),
      // It mostly waits, for parts to come back and for sessions to end: two of its stacks run at once.
      tier('failure', {
        include: ['test/failure/**/*.test.ts'],
        exclude: [...largeOnly, ...smallOnly],
        timeoutMs: 600_000,
        maxWorkers: 2,
        groupOrder: 6,
      }),
      tier('soak', { include: ['test/soak/**/*.test.ts'], timeoutMs: 7_200_000, maxWorkers: 1, groupOrder: 7 }),
      // Its programs run one after another: building two of them takes all cores.
      tier('packaging', { include: ['test/packaging/**/*.test.ts'], timeoutMs: 900_000, maxWorkers: 1, groupOrder: 9 }),
      tier('docker', {
        include: ['test/docker/**/*.test.ts'],
        timeoutMs: 300_000,
        setup: 'test/support/docker/provide-engine.ts',
        maxWorkers: 1,
        groupOrder: 10,
      }),
      tier('repo', { include: ['test/repo/**/*.test.ts'], timeoutMs: 60_000, maxWorkers: 1, groupOrder: 8 }),
    ],
  },
})
