/** What the running code of a package may import; its tests may import whatever its package.json names. */
export interface Layer {
  /** Packages of the workspace, or single modules of them. */
  readonly packages: readonly string[]
  /**
   * Libraries. A server's client stands with the package that owns the server, so that it can be replaced in one place.
   */
  readonly libraries: readonly string[]
  /** Whether Node's own modules may be used; a pure package has none. `crypto` counts as pure for its hashes. */
  readonly node: 'all' | 'hashes'
}

const shared = ['@weir/core', '@weir/policy', '@weir/contracts', '@weir/runtime']
const local: Layer = { packages: ['@weir/local-programs', '@weir/runtime'], libraries: [], node: 'all' }

/**
 * Arrows point inwards: services → kafka, redis, clickhouse → contracts → policy → core. Services meet in Kafka, never
 * in an import.
 */
export const layers: Readonly<Record<string, Layer>> = {
  '@weir/core': { packages: [], libraries: ['temporal-polyfill'], node: 'hashes' },
  // What requests and answers say of what they cost.
  '@weir/meters': { packages: ['@weir/core'], libraries: [], node: 'hashes' },
  '@weir/policy': {
    packages: ['@weir/core', '@weir/meters'],
    libraries: ['ipaddr.js', 'temporal-polyfill', 'yaml'],
    node: 'hashes',
  },
  // Readers of other limiters' files: what they find is written as a policy.
  '@weir/import': { packages: ['@weir/policy'], libraries: ['yaml'], node: 'hashes' },
  '@weir/contracts': { packages: ['@weir/core', '@weir/policy'], libraries: [], node: 'hashes' },
  // What HTTP answers, once: both services serve it, the page, the command line and tests read it.
  '@weir/api': {
    packages: ['@weir/core', '@weir/policy', '@weir/contracts'],
    libraries: ['temporal-polyfill', 'typebox'],
    node: 'hashes',
  },
  // Runtime knows no domain: of core only what an operating fault is.
  '@weir/runtime': {
    packages: ['@weir/core/errors.ts'],
    libraries: [
      '@opentelemetry/api',
      '@opentelemetry/exporter-trace-otlp-http',
      '@opentelemetry/resources',
      '@opentelemetry/sdk-trace',
      'fastify',
      'ipaddr.js',
      'pino',
      'prom-client',
      'undici',
    ],
    node: 'all',
  },
  // From credentials and addresses to the caller. It asks the issuers of tokens for their keys.
  '@weir/identity': {
    packages: ['@weir/core', '@weir/policy', '@weir/runtime'],
    libraries: ['jose', 'lru-cache'],
    node: 'all',
  },
  '@weir/redis': { packages: shared, libraries: ['ioredis', 'lru-cache'], node: 'all' },
  '@weir/kafka': { packages: shared, libraries: ['@node-rs/crc32', 'kafkajs', 'lz4-napi', 'snappy'], node: 'all' },
  // The disk log, and the thread that sends it to Kafka.
  '@weir/journal': { packages: [...shared, '@weir/kafka'], libraries: ['@node-rs/crc32'], node: 'all' },
  '@weir/policy-feed': { packages: [...shared, '@weir/kafka'], libraries: [], node: 'all' },
  '@weir/clickhouse': { packages: shared, libraries: ['@clickhouse/client'], node: 'all' },

  // Why a decision came out as it did, and what an edited policy would have decided.
  '@weir/explain': { packages: [...shared, '@weir/api', '@weir/clickhouse'], libraries: [], node: 'all' },

  // One change of the policy at a time, and what it was before.
  '@weir/policy-changes': {
    packages: [...shared, '@weir/api', '@weir/clickhouse', '@weir/explain', '@weir/kafka', '@weir/policy-feed'],
    libraries: [],
    node: 'all',
  },

  // One decision: asked, waited for, recorded, corrected.
  '@weir/decide': { packages: [...shared, '@weir/redis'], libraries: ['prom-client'], node: 'all' },

  // Whether what each server has agrees, and what is restored where it does not.
  '@weir/audit': {
    packages: [...shared, '@weir/clickhouse', '@weir/kafka', '@weir/redis'],
    libraries: [],
    node: 'all',
  },

  // Shipped alone, to programs that call Weir: it has nothing of ours.
  '@weir/client': { packages: [], libraries: ['undici'], node: 'all' },

  '@weir/ingress': {
    packages: [
      ...shared,
      '@weir/api',
      '@weir/decide',
      '@weir/identity',
      '@weir/journal',
      '@weir/kafka',
      '@weir/meters',
      '@weir/policy-feed',
      '@weir/redis',
    ],
    libraries: [
      '@fastify/swagger',
      '@grpc/grpc-js',
      '@grpc/proto-loader',
      '@grpc/reflection',
      'ajv',
      'fastify',
      'grpc-health-check',
      'prom-client',
      'undici',
    ],
    node: 'all',
  },
  '@weir/metering': {
    packages: [...shared, '@weir/kafka', '@weir/clickhouse'],
    libraries: ['prom-client'],
    node: 'all',
  },
  '@weir/alerting': {
    packages: [...shared, '@weir/kafka', '@weir/policy-feed', '@weir/redis', '@weir/clickhouse'],
    libraries: ['bullmq', 'ioredis', 'lru-cache', 'nodemailer', 'prom-client', 'standardwebhooks'],
    node: 'all',
  },
  '@weir/console': {
    packages: [
      ...shared,
      '@weir/api',
      '@weir/audit',
      '@weir/explain',
      '@weir/identity',
      '@weir/kafka',
      '@weir/policy-changes',
      '@weir/policy-feed',
      '@weir/redis',
      '@weir/clickhouse',
      '@weir/page',
    ],
    libraries: [
      '@fastify/ajv-compiler',
      '@fastify/cors',
      '@fastify/swagger',
      'fast-json-stringify',
      'fastify',
      'lru-cache',
    ],
    node: 'all',
  },

  // Served to browsers by the console; what runs there asks the API alone.
  '@weir/page': {
    packages: ['@weir/api', '@weir/core'],
    libraries: ['esbuild', 'fastify', 'htm', 'preact', 'uplot'],
    node: 'all',
  },

  // Runs before anything else of Weir is there.
  '@weir/local-programs': { packages: [], libraries: [], node: 'all' },
  '@weir/local-redis': local,
  '@weir/local-kafka': local,
  '@weir/local-clickhouse': { ...local, libraries: ['chdb'] },
  '@weir/local-demo': { ...local, libraries: ['standardwebhooks'] },

  // Of a service the command line knows its variables; it starts the rest as a program.
  '@weir/cli': {
    packages: [
      ...shared,
      '@weir/api',
      '@weir/audit',
      '@weir/import',
      '@weir/journal',
      '@weir/kafka',
      '@weir/redis',
      '@weir/clickhouse',
      '@weir/ingress/config.ts',
      '@weir/metering/config.ts',
      '@weir/alerting/config.ts',
      '@weir/console/config.ts',
      '@weir/local-programs',
      '@weir/local-redis',
      '@weir/local-kafka',
      '@weir/local-clickhouse',
    ],
    // A load asks by the check API, the proxy and gRPC.
    libraries: ['@grpc/grpc-js', '@grpc/proto-loader', 'commander', 'undici', 'yaml'],
    node: 'all',
  },

  // The site of the pages in docs: what its generator needs beside them.
  '@weir/docs': { packages: ['@weir/api'], libraries: ['vitepress'], node: 'all' },
  // The dashboards of Grafana, in its own types.
  '@weir/grafana': { packages: [], libraries: ['@grafana/grafana-foundation-sdk'], node: 'all' },
  // Programs beside a running Weir: they find it, and run commands, as the command line does.
  '@weir/examples': {
    packages: ['@weir/cli', '@weir/client', '@weir/core', '@weir/runtime'],
    libraries: ['yaml'],
    node: 'all',
  },
}

/** The tests' own package: it may import every other, and no other may import it. */
export const testPackage = '@weir/test'

/** Where a module is worked out while running: the benches and service configurations are found by their file names. */
export const computedImportsIn: readonly string[] = ['test/']

/** Beside main.ts files, what may end the process: the frame that every service's main.ts is, and its stop. */
export const exitsIn: readonly string[] = ['packages/runtime/src/start-service.ts', 'packages/runtime/src/run.ts']

/** Where files may still import each other in a circle. The list only shrinks: nothing is added to it. */
export const circlesYet: readonly string[] = []

/** Where folders of a package may still import each other in a circle. The list only shrinks. */
export const folderCirclesYet: readonly string[] = []
