import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'
import { countAttempts } from '../../support/count-attempts.ts'
import { forFile } from '../../support/opened.ts'
import { until } from '../../support/until.ts'
import { weirUp } from '../../support/weir-up.ts'

/** Files of the data directory that are there to hold them. */
const known = ['state.json', 'secrets.json', 'redis/password', 'redis/password.conf', 'clickhouse/password']
const parts = ['redis', 'kafka', 'clickhouse', 'ingress', 'metering', 'alerting', 'console', 'demo']
const names = [
  ...([
    'demoKey',
    'demoSmallKey',
    'adminToken',
    'webhookSecret',
    'redis',
    'clickhouse',
    'madeKey',
    'madeToken',
  ] as const),
]

const secrets = new Map<string, string>()
const filesIn = (dir: string): string[] =>
  readdirSync(dir, { withFileTypes: true }).flatMap((entry) => {
    if (entry.isDirectory()) return filesIn(join(dir, entry.name))
    return entry.isFile() ? [join(dir, entry.name)] : []
  })
/** Bytes as they are; empty for what has gone meanwhile: processes end, and ClickHouse merges its files. */
function contentOf(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return ''
  }
}
const at = (url: string, path: string, headers: Record<string, string>, body?: object) =>
  fetch(`${url}${path}`, {
    headers: { 'content-type': 'application/json', ...headers },
    signal: AbortSignal.timeout(20_000),
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
  })

/** Every secret is used, rightly and wrongly, at every door, so that it had a chance to be written somewhere. */
const weir = await forFile(weirUp())
const { line } = weir
const admin = { authorization: `Bearer ${line.adminToken}` }
const made = async (path: string, body: object) => JSON.parse(await (await at(line.console, path, admin, body)).text())
const given: Record<(typeof names)[number], unknown> = {
  demoKey: line.demoKey,
  demoSmallKey: line.demoSmallKey,
  adminToken: line.adminToken,
  webhookSecret: JSON.parse(readFileSync(join(weir.dir, 'secrets.json'), 'utf8')).webhookSecret,
  redis: new URL(line.redis).password,
  clickhouse: new URL(line.clickhouse).password,
  madeKey: (await made('/v1/subjects/demo/keys', {})).key,
  madeToken: (await made('/v1/tokens', { name: 'tried', scopes: ['check', 'usage', 'read'] })).token,
}
for (const [name, value] of Object.entries(given)) secrets.set(name, `${value}`)
// First, because an address that sends many wrong credentials has new ones looked at no more.
expect((await at(line.ingress, '/v1/x', { 'x-api-key': `${line.demoKey}` })).status).toBe(200)
const tried = [...secrets.values()].flatMap((secret) =>
  [line.ingress, line.api, line.console].flatMap((url) =>
    ['/v1/x', '/v1/%zz', '/v1/check', '/v1/usage?subject=demo', '/v1/plans/none'].flatMap((path) =>
      [{ 'x-api-key': secret }, { authorization: `Bearer ${secret}` }, { authorization: secret }].map((headers) => {
        const body = path === '/v1/check' ? { key: secret } : undefined
        return async () => (await at(url, path, headers, body)).body?.cancel()
      }),
    ),
  ),
)
await Promise.all(tried.map((ask) => ask()))
const counted = async () => {
  const answer = await at(line.console, '/v1/usage?subject=demo&step=total', admin)
  const { rows } = JSON.parse(await answer.text())
  return Number(rows?.[0]?.count ?? 0) > 0
}
await until(counted)

const pidOf = (part: string) => weir.line.pids[part] ?? 0
const secretOf = (name: string) => {
  const secret = secrets.get(name) ?? ''
  expect(secret.length).toBeGreaterThan(16)
  return secret
}

describe('a secret of weir up', () => {
  countAttempts('Secrets in files, command lines and environments of weir up', 'each secret is only where it is needed')

  test.each(names)('%s is in no log, record, snapshot or other file but those that are there to hold it', (name) => {
    const secret = secretOf(name)
    const holding = filesIn(weir.dir).filter((file) => contentOf(file).includes(secret))
    expect(holding.map((file) => relative(weir.dir, file)).filter((file) => !known.includes(file))).toEqual([])
  })
  test.each(names)('%s is in no command line', (name) => {
    const secret = secretOf(name)
    const lines = readdirSync('/proc')
      .filter((pid) => /^\d+$/.test(pid))
      .map((pid) => contentOf(`/proc/${pid}/cmdline`))
    expect(lines.filter((text) => text.includes(secret))).toEqual([])
  })
  const mayHold: Readonly<Record<string, readonly string[]>> = {
    webhookSecret: ['alerting', 'demo'],
    redis: ['ingress', 'alerting', 'console'],
    clickhouse: ['metering', 'alerting', 'console'],
  }
  test.each(names)('%s is in the environment of no part that does not need it', (name) => {
    const secret = secretOf(name)
    const holders = parts.filter((part) => readFileSync(`/proc/${pidOf(part)}/environ`, 'utf8').includes(secret))
    expect(holders.filter((part) => mayHold[name]?.includes(part) !== true)).toEqual([])
  })
})

/** Local addresses on which a process listens, as /proc has them. */
function listening(pid: number): string[] {
  const fds = readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`)
    } catch {
      return ''
    }
  })
  const inodes = new Set(fds.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []))
  return ['tcp', 'tcp6'].flatMap((table) =>
    readFileSync(`/proc/net/${table}`, 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter(([, , , state, , , , , , inode = '']) => state === '0A' && inodes.has(inode))
      .map(([, local = '']) => local.split(':')[0] ?? ''),
  )
}

describe('another user of the machine, or of its network', () => {
  countAttempts(
    'What weir up opens to others',
    'only loopback, no file of the data directory, and no answer for web pages',
  )
  const loopback = ['0100007F', '00000000000000000000000001000000', '0000000000000000FFFF00000100007F']

  test.each(parts)('finds %s on no address but those of loopback', (part) => {
    const addresses = listening(pidOf(part))
    if (part !== 'metering') expect(addresses.length).toBeGreaterThan(0)
    expect(addresses.filter((address) => !loopback.includes(address))).toEqual([])
  })
  test.each(['secrets.json', 'state.json', 'logs', 'redis', 'kafka', 'clickhouse'])('cannot open %s', (name) => {
    for (const file of [weir.dir, join(weir.dir, name)]) expect(statSync(file).mode & 0o077).toBe(0)
  })
  test.each(['ingress', 'api', 'console', 'clickhouse', 'upstream', 'receiver'] as const)(
    'gets nothing of %s by a web page: no CORS, and no answer to what the page may send unasked',
    async (name) => {
      const { username, password, origin } = new URL(weir.line[name])
      expect([username === '', password === '']).toEqual(name === 'clickhouse' ? [false, false] : [true, true])
      const asked = {
        origin: 'http://evil.example',
        'access-control-request-method': 'POST',
        'sec-fetch-site': 'cross-site',
      }
      for (const method of ['OPTIONS', 'POST', 'GET']) {
        const answer = await fetch(`${origin}/v1/policy?query=SELECT+1`, { method, headers: asked })
        await answer.body?.cancel()
        expect([...answer.headers.keys()].filter((header) => header.startsWith('access-control-'))).toEqual([])
        if (!['upstream', 'receiver'].includes(name)) expect(answer.status).toBeGreaterThanOrEqual(400)
      }
    },
  )
})
