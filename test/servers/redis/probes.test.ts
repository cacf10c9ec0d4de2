import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { expect, inject, onTestFinished, test } from 'vitest'
import { folderForTest, forTest } from '../../support/opened.ts'
import { startServer } from '../../support/servers/start-server.ts'
import { startIngress } from '../../support/start-ingress.ts'

const policy = `
version: 1
plans: { free: { limits: [minute] } }
limits: { minute: { algorithm: fixed_window, size: 100000, window: 1m } }
subjects: { acme: { plan: free, keys: [{ sha256: "ed79cb98bc6d33b0c5c4ce95f9f9ac5a0a3a2d0d4d3e2c3f3a5d7a3a3f0c6c3b" }] } }
identity: { anonymous: free }
upstreams: { demo: { url: "http://127.0.0.1:1", hosts: ["*"] } }
`

test('a Redis that is away takes no ingress out of a balancer: /readyz warns, and limits decide by onUnavailable', async () => {
  const redis = await forTest(startServer(redisServer))
  const dir = await folderForTest('probes')
  await writeFile(join(dir, 'weir.yaml'), policy)
  const ingress = await forTest(
    startIngress({
      WEIR_REDIS_URL: redis.address,
      WEIR_KAFKA_BROKERS: inject('kafkaBrokers'),
      WEIR_POLICY_FILE: join(dir, 'weir.yaml'),
      WEIR_DECISION_DEADLINE_MS: '50',
    }),
  )
  const ask = async (path: string) => {
    const answer = await fetch(`${ingress.ops}${path}`)
    return `${answer.status} ${await answer.text()}`
  }
  // No upstream listens: 502 is the answer to what was admitted.
  const decide = async () => (await fetch(`${ingress.proxy}/x`)).status
  process.kill(redis.pid(), 'SIGSTOP')
  onTestFinished(() => void process.kill(redis.pid(), 'SIGCONT'))
  await expect
    .poll(() => ask('/readyz'))
    .toMatch(/^200 ok\n(?:.*\n)*redis: warning: .*each limit's onUnavailable applies/)
  expect([await decide(), await ask('/livez')]).toEqual([502, '200 ok\n'])
})
