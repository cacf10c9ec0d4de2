import { createHash } from 'node:crypto'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { openAlertingStack, webhookSecret } from '../../support/alerting/open-alerting.ts'
import { forFile } from '../../support/opened.ts'
import { startConsole } from '../../support/start-console.ts'
import { startIngress } from '../../support/start-ingress.ts'

/** As tools replace a file that others read. */
async function replace(file: string, text: string): Promise<void> {
  await writeFile(`${file}.new`, text, { mode: 0o600 })
  await rename(`${file}.new`, file)
}
const hashOf = (token: string) => `${createHash('sha256').update(token).digest('hex')}\n`

const stack = await forFile(
  openAlertingStack(['ops'], { subjects: { acme: { plan: 'free' }, other: { plan: 'free' } } }),
)
const hashFile = join(stack.kafka.dir, 'admin-token-hash')
const secretFile = join(stack.kafka.dir, 'ops-secret')
await replace(hashFile, hashOf('first-token'))
await replace(secretFile, `${webhookSecret}\n`)
const servers = {
  WEIR_REDIS_URL: stack.redis.address,
  WEIR_KAFKA_BROKERS: stack.kafka.address,
  WEIR_CLICKHOUSE_URL: stack.tables.url,
  WEIR_POLICY_FILE: '/nowhere/weir.yaml',
  WEIR_ADMIN_TOKEN_SHA256: '',
  WEIR_ADMIN_TOKEN_SHA256_FILE: hashFile,
}
const admin = await forFile(startConsole(servers))
const ingress = await forFile(startIngress(servers))

const askConsole = async (token: string) =>
  (await admin.ask('GET /v1/policy', undefined, { accept: 'application/json', authorization: `Bearer ${token}` }))
    .status
const askIngress = async (token: string) => {
  const answer = await fetch(`${ingress.api}/v1/check`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: '{"subject":"acme","peek":true}',
  })
  await answer.body?.cancel()
  return answer.status
}
const readyz = async (ops: string) => (await fetch(`${ops}/readyz`)).text()
/** A second is promised; a busy machine may add to it. */
const soon = { timeout: 10_000, interval: 20 }

test('an admin token whose file is replaced opens console and ingress within seconds, and the one before opens neither, also on a connection that carried it', async () => {
  for (const ask of [askConsole, askIngress]) {
    expect([await ask('first-token'), await ask('second-token')]).toEqual([200, 401])
    expect(await ask('first-token')).toBe(200)
  }
  await replace(hashFile, hashOf('second-token'))
  for (const ask of [askConsole, askIngress]) {
    await expect.poll(() => ask('first-token'), soon).toBe(401)
    expect(await ask('second-token')).toBe(200)
  }
  await replace(hashFile, 'second-token\n')
  for (const [ops, ask] of [
    [admin.ops, askConsole],
    [ingress.ops, askIngress],
  ] as const) {
    await expect
      .poll(() => readyz(ops), soon)
      .toContain('warning: WEIR_ADMIN_TOKEN_SHA256_FILE names a file whose content')
    expect(await readyz(ops)).toMatch(/^ok\n(?!.*second-token)/s)
    expect(await ask('second-token')).toBe(200)
  }
})

test("an endpoint's secret whose file is replaced signs the next delivery", async () => {
  const alerting = await stack.start({ OPS_SECRET: '', OPS_SECRET_FILE: secretFile })
  const signedFor = async (subject: string, secret: string) => {
    await stack.decide([subject], 800)
    const found = () => stack.received.find(({ body }) => JSON.parse(body).data.subject === subject)
    await expect.poll(found, { timeout: 30_000 }).toBeDefined()
    const { body = '', headers = {} } = found() ?? {}
    const signed = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))
    expect(() => new Webhook(secret).verify(body, signed)).not.toThrow()
  }
  await signedFor('first', webhookSecret)
  const next = `whsec_${Buffer.alloc(32, 6).toString('base64')}`
  await replace(secretFile, next)
  await signedFor('second', next)
  await replace(secretFile, 'whsec_short')
  await expect
    .poll(async () => (await alerting.ready()).text, soon)
    .toContain('warning: the file of OPS_SECRET_FILE (endpoint ops) must contain whsec_')
  await expect.poll(() => alerting.said(), soon).toContain('the file of OPS_SECRET_FILE (endpoint ops)')
  expect(`${alerting.said()}${(await alerting.ready()).text}`).not.toContain('whsec_short')
})
