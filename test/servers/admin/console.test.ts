import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect, inject, test } from 'vitest'
import { startConsoleOnKafka } from '../../support/console-stack.ts'
import { runWeir } from '../../support/weir-up.ts'

const policyText = (size: number) => `
version: 1
plans: { free: { limits: [minute] } }
limits: { minute: { algorithm: fixed_window, size: ${size}, window: 1m } }
subjects: { acme: { plan: free } }
`

/** A Kafka of this file's own: it is stopped and started, and the policy's topic has one name. */
const { kafka, desk: admin, close } = await startConsoleOnKafka()
afterAll(close)

interface Page {
  readonly items: readonly { readonly id: string; readonly name: string; readonly by: string }[]
}

async function policyFile(size: number): Promise<string> {
  const file = join(kafka.dir, `weir-${size}.yaml`)
  await writeFile(file, policyText(size))
  return file
}

const weir = (...args: string[]) => runWeir(args, admin.environment)

test('a file is compared, applied and exported from the command line', async () => {
  const file = await policyFile(100)
  const before = await weir('diff', '--policy', file)
  expect([before.code, before.stdout.split('\n').filter((line) => line.startsWith('+ '))]).toEqual([
    1,
    [
      expect.stringContaining('+ limit minute'),
      expect.stringContaining('+ plan free'),
      expect.stringContaining('+ subject acme'),
    ],
  ])
  expect((await weir('apply', '--policy', file, '--dry-run')).code).toBe(0)
  expect((await weir('diff', '--policy', file)).code).toBe(1)
  const applied = await weir('apply', '--policy', file)
  expect([applied.code, applied.stderr]).toEqual([0, expect.stringContaining('3 added, 0 changed, 0 destroyed')])
  const same = await weir('diff', '--policy', file)
  expect([same.code, same.stdout]).toEqual([0, ''])

  const edited = await weir('diff', '--policy', await policyFile(200))
  expect([edited.code, edited.stdout]).toEqual([1, '~ limit minute  size: 100 → 200\n'])
  const exported = await weir('export')
  await writeFile(join(kafka.dir, 'exported.yaml'), exported.stdout)
  expect((await weir('diff', '--policy', join(kafka.dir, 'exported.yaml'))).code).toBe(0)

  const limits = { day: { algorithm: 'fixed_window', size: 1, period: 'day' } }
  const plans = Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`p${at}`, { limits: ['day'] }]))
  const other = join(kafka.dir, 'many.yaml')
  await writeFile(other, JSON.stringify({ version: 1, limits, plans }))
  const refused = await weir('apply', '--policy', other)
  expect([refused.code, refused.stdout.trim().split('\n')]).toEqual([
    2,
    expect.arrayContaining([
      '+ 12 × plan  p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, … and 2 more',
      '- limit minute',
      '- subject acme',
    ]),
  ])
  expect(refused.stderr).toMatch(/Plan: 13 to add, 0 to change, 3 to destroy\.\n.*destroys 3 parts .*Add --yes/)
  expect((await weir('diff', '--policy', file)).code).toBe(0)
  const confirmed = await weir('apply', '--policy', other, '--yes')
  expect([confirmed.code, confirmed.stderr]).toEqual([0, expect.stringContaining('13 added, 0 changed, 3 destroyed')])
  expect((await weir('apply', '--policy', file, '--yes')).code).toBe(0)

  const wrong = await weir('apply', '--policy', await policyFile(-1))
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('limits.minute.size')])
  const unknown = await weir('keys', 'create', 'acmee')
  expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('did you mean acme?')])
})

test('keys are made, exchanged, listed and revoked from the command line, and stand in no log', async () => {
  const created = await weir('keys', 'create', 'acme', '--id', 'cli')
  expect([created.code, created.stdout]).toEqual([0, expect.stringMatching(/^weir_[\w-]{43}\n$/)])
  const rotated = JSON.parse(
    (await weir('keys', 'rotate', 'cli', '--overlap', '1h', '--new-id', 'cli-2', '--json')).stdout,
  )
  expect(rotated).toMatchObject({ id: 'cli-2', subject: 'acme', old: { id: 'cli' } })
  expect((await weir('keys', 'list', '--subject', 'acme')).stdout).toMatch(/^ID +KEY +SUBJECT +CREATED +EXPIRES\n/)
  expect((await weir('keys', 'revoke', 'cli')).code).toBe(0)
  const listed = JSON.parse((await weir('keys', 'list', '--json')).stdout)
  expect(listed).toMatchObject([{ id: 'cli-2', subject: 'acme', expires: null, prefix: rotated.key.slice(0, 9) }])
  const log = await admin.readLog()
  for (const secret of [created.stdout.trim(), rotated.key, admin.environment.WEIR_ADMIN_TOKEN]) {
    expect(log).not.toContain(secret)
  }
})

test('Resets and unblocks by command go through the console and are in its audit, or say that they are in none', async () => {
  const withoutRedis = { ...admin.environment, WEIR_REDIS_URL: 'redis://127.0.0.1:1' }
  for (const change of ['reset', 'unblock']) {
    const done = await runWeir(['limits', change, '--subject', 'acme', '--json'], withoutRedis)
    expect([done.code, JSON.parse(done.stdout)]).toMatchObject([0, { subject: 'acme', changed: [{ name: 'minute' }] }])
    const { items } = (await admin.ask<Page>('GET /v1/changes?limit=1')).body
    expect(items).toMatchObject([{ by: 'root', summary: [{ what: change, kind: 'subject', name: 'acme' }, {}] }])
  }
  const unknown = await runWeir(['limits', 'reset', '--subject', 'acmee'], withoutRedis)
  expect([unknown.code, unknown.stderr.includes('did you mean acme?')]).toEqual([2, true])
  const gone = { WEIR_CONSOLE_URL: 'http://127.0.0.1:9', WEIR_ADMIN_TOKEN: 'x', WEIR_POLICY_FILE: await policyFile(5) }
  const direct = await runWeir(['limits', 'reset', '--subject', 'acme'], {
    ...gone,
    WEIR_REDIS_URL: inject('redisUrl'),
  })
  // Redis is the tier's: another file may have counted a subject of this name.
  expect([direct.code, direct.stdout]).toEqual([
    0,
    expect.stringMatching(/^reset minute of acme: \d+ keys? removed\n$/),
  ])
  expect(direct.stderr).toContain('no audit has it')
})

test('a console that is killed and started again has everything, the audit included', async () => {
  const [policy, changes] = [await admin.ask('GET /v1/policy'), await admin.ask<Page>('GET /v1/changes')]
  expect(changes.body.items.length).toBeGreaterThan(3)
  await admin.kill()
  await admin.restart()
  expect((await admin.ask('GET /v1/policy')).body).toEqual(policy.body)
  expect((await admin.ask('GET /v1/changes')).body).toEqual(changes.body)
})

test('while Kafka is stopped changes are refused and reading goes on; afterwards all is as before, and changes are taken', async () => {
  const [policy, changes] = [await admin.ask('GET /v1/policy'), await admin.ask('GET /v1/changes')]
  await kafka.kill('SIGKILL')
  const refused = await admin.ask<{ readonly type: string }>('PUT /v1/plans/team', { limits: ['minute'] })
  expect([refused.status, refused.body.type]).toEqual([503, 'urn:weir:problem:policy-unavailable'])
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect((await admin.ask('GET /v1/policy')).body).toEqual(policy.body)
  const ready = await fetch(`${admin.ops}/readyz`)
  expect([ready.status, await ready.text()]).toEqual([200, expect.stringContaining('policy: warning')])
  await kafka.restart()
  expect((await admin.ask('GET /v1/policy')).body).toEqual(policy.body)
  expect((await admin.ask('GET /v1/changes')).body).toEqual(changes.body)
  await expect
    .poll(async () => (await admin.ask('PUT /v1/plans/team', { limits: ['minute'] })).status, { timeout: 60_000 })
    .toBeLessThan(300)
  expect((await admin.ask<Page>('GET /v1/plans')).body.items.map(({ name }) => name)).toEqual(['free', 'team'])
})
