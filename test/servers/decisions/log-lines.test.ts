import { readFile } from 'node:fs/promises'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { expect, test } from 'vitest'
import { openIngressStack } from '../../support/ingress-stack.ts'
import { forFile } from '../../support/opened.ts'
import { countOf, readDecisions } from '../../support/servers/read-decisions.ts'
import type { RunningIngress } from '../../support/start-ingress.ts'
import { until } from '../../support/until.ts'

/** Whatever a caller sends that is no name of the policy. */
const secrets = {
  key: 'secret-of-acme',
  token: 'secret-of-the-app',
  wrong: 'secret-that-is-wrong',
  cookie: 'secret-in-a-cookie',
  body: 'secret-in-a-body',
  path: 'secret-in-a-path',
  query: 'secret-in-a-query',
  attribute: 'secret-in-an-attribute',
}
const policy = {
  version: 1,
  plans: { small: { limits: ['ten', 'team'] }, big: { limits: [] } },
  limits: {
    ten: { algorithm: 'fixed_window', size: 10, window: '7d' },
    team: { algorithm: 'fixed_window', size: 1_000, window: '7d', by: ['subject', 'attribute:team'] },
  },
  routes: [{ match: 'GET /v1/users/:id' }],
  upstreams: { api: { url: 'http://127.0.0.1:1', hosts: ['*'] } },
  subjects: { acme: { plan: 'small', keys: [{ id: 'acme-1', sha256: sha256(secrets.key) }] }, many: { plan: 'big' } },
  tokens: { app: { sha256: sha256(secrets.token), scopes: ['check'] } },
}

const stack = await forFile(openIngressStack(policy))

const start = (which: string) => stack.start({ WEIR_LOG_DECISIONS: which, WEIR_LOG_LEVEL: 'warn' })

type Line = Readonly<Record<string, unknown>>
/** The lines that are whole: a reader may see the one that is being written up to the end of a page. */
const linesOf = async ({ logFile }: RunningIngress) => {
  const lines = (await readFile(logFile, 'utf8')).split('\n').slice(0, -1)
  return lines.map((line): Line => JSON.parse(line))
}
const isDecision = ({ msg }: Line) => msg === 'decision'

const checkAs = (ingress: RunningIngress, path: string, body: object) =>
  fetch(ingress.api + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${secrets.token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

/** Every record of the journals that an ingress of this test wrote, in the fields that lines have. */
const recordsOf = (journals: ReadonlySet<string>, count: number) =>
  readDecisions(
    stack.kafka,
    ({ journal }) => !journals.has(journal),
    (found) => countOf(found) >= count,
  )

const known = new Set<string>()
const byId = (a: Line, b: Line) => (String(a.id) < String(b.id) ? -1 : 1)
/** A line as its record has it. */
const asRecord = ({ level: _, time: __, service: ___, pid: ____, msg: _____, ...record }: Line) => record

test.each(['denied', 'all'] as const)(
  '%s: every record is one line with its fields, that of many refusals too, and no secret is in any',
  async (which) => {
    const ingress = await start(which)
    const ask = (path: string, headers: Readonly<Record<string, string>>) => fetch(ingress.proxy + path, { headers })
    const asked = { subject: 'acme', route: 'GET /hello', attributes: { team: secrets.attribute } }
    for (let at = 0; at < 20; at += 1) await checkAs(ingress, '/v1/check', { ...asked, body: { card: secrets.body } })
    const path = `/v1/users/${secrets.path}?token=${secrets.query}`
    await ask(path, { 'x-api-key': secrets.key, cookie: `session=${secrets.cookie}` })
    await ask(path, { authorization: `Bearer ${secrets.key}` })
    for (let at = 0; at < 10; at += 1) await ask('/', { 'x-api-key': secrets.wrong })
    const records = await recordsOf(known, 32)
    for (const { journal } of records) known.add(journal)
    const wanted = records.filter(({ outcome }) => which === 'all' || outcome === 'deny')
    expect(wanted.some(({ count }) => count > 1)).toBe(true)
    const all = async () => (await linesOf(ingress)).filter(isDecision)
    await until(async () => (await all()).length >= wanted.length, 10_000)
    const lines = await all()
    const text = await readFile(ingress.logFile, 'utf8')
    await ingress.close()
    expect(lines.map(asRecord).toSorted(byId)).toEqual(
      wanted.map(({ journal: _, seq: __, ...fields }) => fields).toSorted(byId),
    )
    for (const secret of Object.values(secrets)) expect(text).not.toContain(secret)
    expect(text).not.toContain(sha256(secrets.key))
  },
)

/** Decides so many batches of a hundred at once, and returns the ids. */
async function decideBatches(ingress: RunningIngress, batches: number): Promise<readonly string[]> {
  const checks = Array.from({ length: 100 }, () => ({ subject: 'many', route: 'GET /hello' }))
  const answers = await Promise.all(
    Array.from({ length: batches }, async () => {
      const answer = await checkAs(ingress, '/v1/check/batch', { checks })
      return (await answer.json()) as { readonly results: readonly { readonly id: string }[] }
    }),
  )
  return answers.flatMap(({ results }) => results.map(({ id }) => id))
}

test('lines are at most 1,000 a second, and what is left out is counted', async () => {
  const ingress = await start('all')
  const ids = await decideBatches(ingress, 80)
  const counts = async () => {
    const lines = await linesOf(ingress)
    const leftOut = Number(lines.findLast((line) => 'leftOut' in line)?.leftOut ?? 0)
    return { written: lines.filter(isDecision).length, leftOut }
  }
  const isWhole = async () => {
    const { written, leftOut } = await counts()
    return leftOut > 0 && written + leftOut === ids.length
  }
  await until(isWhole, 15_000)
  expect((await counts()).written).toBeGreaterThanOrEqual(1_000)
  await ingress.close()
})

test('a sample has one of a hundred records, by the ends of their ids', async () => {
  const ingress = await start('sampled')
  const ids = await decideBatches(ingress, 20)
  const sample = ids.filter((id) => Number.parseInt(id.slice(-6), 16) % 100 === 0)
  const written = async () => (await linesOf(ingress)).filter(isDecision).map(({ id }) => id)
  await until(async () => (await written()).length >= sample.length, 10_000)
  expect((await written()).toSorted()).toEqual(sample.toSorted())
  expect(sample.length).toBeGreaterThan(0)
  await ingress.close()
})
