import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { importNginx } from '@weir/import/import-nginx.ts'
import { importedText } from '@weir/import/imported-policy.ts'
import { expect, test } from 'vitest'
import { startPlainUpstream } from '../../support/gateways/plain-upstream.ts'
import { send } from '../../support/gateways/send.ts'
import { startGateway } from '../../support/gateways/start-gateway.ts'
import { openWeirApps } from '../../support/gateways/weir-apps.ts'
import { forTest } from '../../support/opened.ts'

const frame = readFileSync(resolve(import.meta.dirname, '../../../examples/nginx/nginx.conf'), 'utf8')

/** Rates so slow that nothing flows back within a burst on a busy machine, and what is asked concurrently, in turns. */
const cases = [
  { zone: 'rate=6r/m', use: '', bursts: [{ '/': 5 }] },
  { zone: 'rate=6r/m', use: 'burst=4 nodelay', bursts: [{ '/': 12 }, { '/': 2 }] },
  { zone: 'rate=30r/m', use: 'burst=3', bursts: [{ '/': 7 }] },
  { zone: 'rate=30r/m', use: 'burst=4 delay=2', bursts: [{ '/': 9 }] },
  {
    zone: 'rate=6r/m',
    use: 'burst=2 nodelay',
    bursts: [
      { '/in/a': 3, '/': 3 },
      { '/in/b': 6, '/x': 3 },
    ],
  },
]

test.each(cases)('With $zone $use as many requests are admitted as by nginx', async ({ zone, use, bursts }) => {
  const upstream = await forTest(startPlainUpstream())
  const config = (port: number) => `
limit_req_zone $binary_remote_addr zone=z:1m ${zone};
limit_req_zone $binary_remote_addr zone=inner:1m ${zone};
limit_req_status 429;
server {
  listen 127.0.0.1:${port};
  location / { limit_req zone=z ${use}; proxy_pass ${upstream.url}; }
  location /in/ { limit_req zone=z ${use}; limit_req zone=inner burst=1 nodelay; proxy_pass ${upstream.url}; }
}`
  const nginx = await forTest(
    startGateway(async (port) => ({
      files: { 'nginx.conf': frame, 'weir.conf': config(port), 'weir-blocked.conf': '' },
      command: (dir) => ['nginx', '-p', dir, '-e', 'stderr', '-c', join(dir, 'nginx.conf')],
    })),
  )
  const result = importNginx([{ name: 'nginx.conf', text: config(80) }])
  if (result.kind === 'problems') throw new Error(JSON.stringify(result.problems))
  const policy = importedText(result.policy, result.notes)
  const weir = await forTest(openWeirApps(`${policy}upstreams: { api: { url: "${upstream.url}" } }\n`))
  for (const burst of bursts) {
    const statuses = await Promise.all([nginx.url, weir.proxy].map((origin) => statusesOf(origin, burst)))
    expect(statuses[1]).toEqual(statuses[0])
    expect(Object.values(statuses[0] ?? {}).join()).toMatch(/429/)
  }
})

/** How often each path of a burst was answered with which status. */
async function statusesOf(origin: string, burst: Readonly<Record<string, number>>) {
  const found: Record<string, string> = {}
  for (const [path, count] of Object.entries(burst)) {
    const answers = await Promise.all(Array.from({ length: count }, () => send(origin, { path })))
    found[path] = answers
      .map(({ status }) => status)
      .toSorted((a, b) => a - b)
      .join(' ')
  }
  return found
}
