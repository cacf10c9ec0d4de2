import { defineConfig } from 'vitest/config'

/** A project per tier (test/README.md). Unit tests stand beside what they test; the other tiers live in test/. */
const tier = (name: string, include: string[], timeoutMs: number, servers: string[] = []) => ({
  test: {
    name,
    include,
    testTimeout: timeoutMs,
    hookTimeout: timeoutMs,
    // Whoever starts whole stacks or kills servers does it alone; two cores are few. The failure tier mostly waits, for parts to come
    // back and for sessions to end: two of its stacks run at once.
    fileParallelism: !['servers', 'smoke', 'soak'].includes(name),
    ...(name === 'failure' ? { maxWorkers: 2, sequence: { groupOrder: 1 } } : {}),
    globalSetup: servers.map((server) => `test/support/servers/provide-${server}.ts`),
  },
})

export default defineConfig({
  test: {
    projects: [
      tier('unit', ['{packages,services,infra}/**/*.test.ts'], 5_000),
      tier('lua', ['test/lua/**/*.test.ts'], 30_000, ['redis']),
      tier('servers', ['test/servers/**/*.test.ts'], 120_000, ['redis', 'kafka', 'clickhouse']),
      tier('smoke', ['test/smoke/**/*.test.ts'], 300_000),
      tier('failure', ['test/failure/**/*.test.ts'], 600_000),
      tier('soak', ['test/soak/**/*.test.ts'], 7_200_000),
      tier('repo', ['test/repo/**/*.test.ts'], 60_000),
    ],
  },
})
