import { copyFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type ClickHouseClient, clickhouseMissing, connectClickhouse } from '@weir/clickhouse/connect.ts'
import { clickhouseAt } from '@weir/clickhouse/variables.ts'
import { encodeMark } from '@weir/contracts/journal.v1.ts'
import { formatTs } from '@weir/contracts/timestamp.ts'
import { topics } from '@weir/contracts/topics.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { createRecordSender } from '@weir/kafka/send-records.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { endSessions, newJournal } from '../../servers/metering/open-metering.ts'
import { createAuthority } from '../../support/servers/certificates.ts'
import { documentedGrants, formOf, isAbout, showsViews, takenAtOnce } from '../../support/servers/clickhouse-grants.ts'
import {
  type ClickhouseProxy,
  type SentStatement,
  startClickhouseProxy,
} from '../../support/servers/clickhouse-proxy.ts'
import { dayLimit, leastRightsPolicy as policy, questions } from '../../support/servers/clickhouse-questions.ts'
import { isMetered } from '../../support/servers/is-metered.ts'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { expectSameAnswers } from '../../support/servers/replay-statements.ts'
import { type RunningServer, startServer } from '../../support/servers/start-server.ts'
import { type ServiceProcess, startServiceProcess } from '../../support/service-process.ts'
import { type RunningConsole, startConsole } from '../../support/start-console.ts'
import { until } from '../../support/until.ts'
import { runWeir } from '../../support/weir-up.ts'

const database = 'usage_of_acme'
let secure: ClickhouseProxy
let kafka: RunningServer
let redis: RunningServer
let policyFile: string
/** With every right, behind the proxy. */
let client: ClickHouseClient
let sender: ReturnType<typeof createRecordSender>
let keys: Redis
const started: ServiceProcess[] = []

const environmentOf = async (user: string) => ({
  ...(await secure.environmentOf(user, database)),
  WEIR_KAFKA_BROKERS: kafka.address,
  WEIR_REDIS_URL: redis.address,
  WEIR_POLICY_FILE: policyFile,
  OPS_SECRET: `whsec_${Buffer.alloc(32, 5).toString('base64')}`,
})
const start = async (name: 'metering' | 'alerting', more: Readonly<Record<string, string>> = {}) => {
  const one = await startServiceProcess(name, { ...(await environmentOf(`weir_${name}`)), ...more })
  started.push(one)
  return one
}
const countOf = async (table: string, what = 'count()') => {
  const answer = await client.query({ query: `SELECT toUInt32(${what}) AS n FROM ${table}`, format: 'JSONEachRow' })
  return (await answer.json<{ n: number }>())[0]?.n ?? 0
}
/** Rows that were sent, by topic: every other value is a mark, or bad. */
const rowsSent = new Map<string, number>()
const send = (topic: string, values: readonly string[]) => {
  const rows = values.filter((value) => value.includes('"subject"')).length
  rowsSent.set(topic, (rowsSent.get(topic) ?? 0) + rows)
  const records = values.map((value) => ({ key: 'acme', value }))
  return sender.send(topic, records)
}
const journal = newJournal('acme')
/** What each metering process sent that repaired a block. */
const repairs: SentStatement[][] = []
let subjects = 0
const sentBy = (user: string, from = 0) => secure.sent.slice(from).filter((one) => one.user === user)
let outcomes = 0
const outcomesOf = (count: number) =>
  Array.from({ length: count }, () => {
    outcomes += 1
    return `{"v":1,"id":"${crypto.randomUUID()}","ts":"${new Date().toISOString().replace('T', ' ').slice(0, -1)}","subject":"acme","route":"GET /","method":"GET","status":200,"duration_ms":12.5,"bytes_in":1,"bytes_out":2,"upstream":"demo","error":"","journal":"${journal.id}","seq":${outcomes - 1}}`
  })

beforeAll(async () => {
  ;[secure, kafka, redis] = await Promise.all([
    startClickhouseProxy(),
    startServer(kafkaServer),
    startServer(redisServer),
  ])
  policyFile = join(kafka.dir, 'weir.yaml')
  await writeFile(policyFile, policy)
  await ensureTopics(kafkaOptions(kafka.address), await readTopics())
  sender = createRecordSender(kafkaOptions(kafka.address))
  client = connectClickhouse({ ...clickhouseAt(secure.server.address), clickhouseDatabase: database }, 'test')
  keys = new Redis(redis.address)
})
afterAll(async () => {
  await Promise.all(started.map((one) => one.kill('SIGKILL')))
  await sender?.close()
  await client?.close()
  keys?.disconnect()
  await Promise.all([secure?.close(), kafka?.close(), redis?.close()])
})

async function meterRest(topic: string): Promise<void> {
  if (await isMetered(kafka.address, topic, 'acme')) return
  const metering = await start('metering')
  await until(() => isMetered(kafka.address, topic, 'acme'))
  await metering.kill('SIGTERM')
}

/** What metering does daily, and when a block may not be in every table once; `onHeir` is called while it repairs. */
async function meter(onHeir: (heir: ServiceProcess) => Promise<void> = async () => undefined): Promise<void> {
  const records = journal.take(100)
  const { seq } = JSON.parse(records.at(-1) ?? '')
  const mark = encodeMark(Date.now(), journal.id, seq + 1, false)
  const rounds = [
    { topic: topics.decisions, table: 'decisions', rollup: 'usage_15m', values: [...records, 'bad', mark] },
    { topic: topics.outcomes, table: 'outcomes', rollup: 'outcomes_15m', values: outcomesOf(100) },
  ]
  for (const { topic, table, rollup, values } of rounds) {
    // A block of its own would be inserted again by every process that dies of it.
    await meterRest(topic)
    await send(topic, values)
    const wanted = rowsSent.get(topic) ?? 0
    const victim = await start('metering', { WEIR_CRASH_AT: 'metering.insert' })
    await victim.ended
    await endSessions(kafkaOptions(kafka.address))
    const newest = `offset > (SELECT max(offset) - 50 FROM ${table})`
    await client.command({
      query: `INSERT INTO ${table} SELECT * FROM ${table} WHERE ${newest} SETTINGS insert_deduplicate = 0`,
    })
    const from = secure.sent.length
    const heir = await start('metering')
    await onHeir(heir)
    await until(async () => (await countOf(table)) === wanted && (await countOf(rollup, 'sum(count)')) === wanted)
    await until(async () => heir.said().includes('in every table: repaired') && (await heir.ready()).status === 200)
    await until(async () => isMetered(kafka.address, topic, 'acme'))
    await heir.kill('SIGTERM')
    repairs.push(sentBy('weir_metering', from))
  }
}

/** Two hours of an ingress that has been there, so that rates are compared. */
const presence = () =>
  client.insert({
    table: 'marks',
    values: [
      {
        topic: topics.decisions,
        journal: crypto.randomUUID(),
        partition: 0,
        seq: 1,
        end: false,
        mark: formatTs(Date.now()),
        first_mark: formatTs(Date.now() - 7_200_000),
      },
    ],
    format: 'JSONEachRow',
  })

async function alert(onStart: (alerting: ServiceProcess) => Promise<void> = async () => undefined): Promise<void> {
  await presence()
  await keys.del('weir:1:watches:turn', 'weir:1:watches:looked')
  const wanted = [(await countOf('alerts')) + 1, (await countOf('deliveries', 'countIf(attempt > 0)')) + 1] as const
  const alerting = await start('alerting')
  subjects += 1
  const [record = ''] = newJournal(`subject-${subjects}`).take(1)
  const resetMs = 86_400_000 - (Date.now() % 86_400_000) // tells the period: an alert of another day would be late
  const limit = `{"name":"day","size":1000,"used":900,"remaining":100,"reset_ms":${resetMs}}`
  await send(topics.decisions, [record.replace(/"limits":.*?\]/, `"limits":[${limit}]`)])
  await onStart(alerting)
  await until(async () => (await countOf('alerts')) >= wanted[0])
  await until(async () => (await countOf('deliveries', 'countIf(attempt > 0)')) >= wanted[1])
  for (const table of ['usage_1m', 'decisions']) {
    await until(() => sentBy('weir_alerting').some(({ text }) => text.includes(`FROM ${table} AS u`)), 90_000)
  }
  await alerting.kill('SIGTERM')
}

async function ask(): Promise<RunningConsole> {
  const desk = await startConsole(await environmentOf('weir_console'))
  expect((await desk.ask('PUT /v1/policy', policy)).status).toBe(200)
  for (const path of await questions(client)) expect((await desk.ask(`GET /v1/${path}`)).status).toBe(200)
  await until(() => sentBy('weir_console').some(({ text }) => text.includes('ARRAY JOIN')))
  return desk
}

async function audit(): Promise<void> {
  const environment = await environmentOf('weir_audit')
  const damaged = {
    usage_1m: '1',
    usage_15m: '1',
    usage_total_15m: '1',
    limits_15m: '1',
    units_15m: '1',
    outcomes_15m: '1',
    decisions: 'offset < 10',
    outcomes: 'offset < 10',
  }
  for (const [table, rows] of Object.entries(damaged)) {
    await client.command({ query: `DELETE FROM ${table} WHERE ${rows} SETTINGS lightweight_deletes_sync = 2` })
  }
  const commands = [
    ['audit', '--repair', '--policy', policyFile],
    ['restore-quotas', '--policy', policyFile],
    ['metering', 'seek', '--partition', '0', '--to', 'clickhouse'],
  ]
  for (const args of commands) {
    const { code, stderr } = await runWeir(args, environment)
    expect([args[0], code, stderr]).toEqual([args[0], 0, stderr])
  }
}

/** Everything that each process sends, once. */
async function everything(): Promise<void> {
  const migrated = await runWeir(['migrate'], await environmentOf('weir_migrate'))
  expect([migrated.code, migrated.stderr]).toEqual([0, expect.stringContaining('tables: applied')])
  await meter()
  await alert()
  await (await ask()).close()
  await audit()
  expect(
    await client.query({ query: "SELECT name FROM system.databases WHERE name = 'weir'" }).then((one) => one.text()),
  ).not.toContain('"weir"')
}

/** The statements that the engine refuses when a user has all its grants but one, with its words. */
type Refused = ReadonlyMap<string, string>
const refusedWithout = new Map<string, Map<string, Refused>>()

async function refusedStatements(statements: readonly SentStatement[]): Promise<Refused> {
  const refused = new Map<string, string>()
  for (const one of statements) {
    const answer = await secure.repeat(one)
    if (/Code: 497/.test(answer) && !/pushing to view/.test(answer))
      refused.set(formOf(one), answer.replace('default:', `${one.user}:`))
  }
  return refused
}

test('each process may send all that it sends with its documented rights, and needs every one of them', async () => {
  await everything()
  const documented = await documentedGrants(database)
  expect([...documented.keys()].toSorted()).toEqual([...new Set(secure.sent.map(({ user }) => user))].toSorted())
  const [superfluous, lacking]: [string[], string[]] = [[], []]
  for (const [user, all] of documented) {
    const statements = [...new Map(sentBy(user).map((one) => [formOf(one), one])).values()]
    const isSystem = (grant: string) => grant.includes(' system.')
    const named = statements.flatMap(({ text }) =>
      [...text.matchAll(/\bsystem\.\w+/g)].map(([name]) => `SELECT ON ${name}`),
    )
    expect([user, ...new Set(all.filter(isSystem))].toSorted()).toEqual([user, ...new Set(named)].toSorted())
    const grants = [...new Set(all.filter((one) => !isSystem(one)))]
    await secure.useGrants(grants)
    lacking.push(...(await refusedStatements(statements)).values())
    const without = new Map<string, Refused>()
    for (const round of takenAtOnce(grants, statements)) {
      await secure.useGrants(grants.filter((one) => !round.includes(one)))
      for (const grant of round) {
        const refused = await refusedStatements(statements.filter(({ text }) => isAbout(text, grant)))
        if (refused.size > 0) without.set(grant, refused)
        else if (!grant.startsWith('SHOW') || (await showsViews(secure, statements)))
          superfluous.push(`${user}: ${grant}`)
      }
    }
    refusedWithout.set(user, without)
  }
  await secure.useGrants(undefined)
  expect({ lacking, superfluous }).toEqual({ lacking: [], superfluous: [] })
}, 600_000)

test('no setting of a profile changes an answer, or what is stored', () => expectSameAnswers(secure, database), 600_000)

const messages: string[] = []
/** Until a process names what a person has to do. */
async function untilNamed(what: string, said: () => Promise<string>): Promise<void> {
  await until(async () => (await said()).includes(what), 90_000).catch(async (error: unknown) => {
    throw new Error(`${what} is not named in: ${(await said()).slice(-3_000)}`, { cause: error })
  })
  const line = (await said()).split(/\n|\\n|"/).find((one) => one.includes(what))
  messages.push(`${what}\n    ${line}`)
}
const saidBy = (one: ServiceProcess) => async () => (await one.ready()).text + one.said()
const refuse = (user: string, grant: string) => {
  const refused = refusedWithout.get(user)?.get(grant)
  secure.refuse = (one) => (one.user === user ? refused?.get(formOf(one)) : undefined)
}

test('metering waits for each missing right, names it, and has counted everything once in the end', async () => {
  const seen = new Set<string>()
  const recorded = repairs.splice(0).map((statements) => statements.map(formOf))
  await meter(async (heir) => {
    // In the order in which it needs them: what comes later is reached only when what comes before is there.
    const order = recorded.shift() ?? []
    const needed = [...(refusedWithout.get('weir_metering') ?? [])]
      .map(([grant, forms]) => ({ grant, at: order.findIndex((form) => forms.has(form)) }))
      .filter(({ at, grant }) => at >= 0 && !seen.has(grant))
      .toSorted((a, b) => a.at - b.at)
    for (const { grant } of needed) {
      refuse('weir_metering', grant)
      await untilNamed(`GRANT ${grant} TO weir_metering`, saidBy(heir))
      seen.add(grant)
    }
    secure.refuse = () => undefined
  })
  expect([...seen].toSorted()).toEqual([...(refusedWithout.get('weir_metering')?.keys() ?? [])].toSorted())
}, 600_000)

test('alerting waits for a missing right to alerts or deliveries, names it, and loses none of them', async () => {
  // Those of watches are asked for once a minute; the first test has them.
  const all = [...(refusedWithout.get('weir_alerting')?.keys() ?? [])]
  for (const grant of all.filter((one) => /alerts|deliveries/.test(one))) {
    refuse('weir_alerting', grant)
    await alert(async (alerting) => {
      await untilNamed(`GRANT ${grant} TO weir_alerting`, saidBy(alerting))
      secure.refuse = () => undefined
    })
  }
}, 600_000)

test('the console answers 503 while a right is missing, names it for operators alone, and answers when it is there', async () => {
  for (const [at, grant] of [...(refusedWithout.get('weir_console')?.keys() ?? [])].entries()) {
    refuse('weir_console', grant)
    await keys.flushall()
    const desk = await startConsole(await environmentOf('weir_console'))
    // One by one: the console answers few questions of a credential at once.
    const answers: Awaited<ReturnType<typeof desk.ask<{ detail?: string }>>>[] = []
    for (const path of await questions(client)) answers.push(await desk.ask(`GET /v1/${path}`))
    // No answer waits for the policy's history, and only a change makes it insert.
    if (!grant.endsWith('.policy_history')) expect(answers.map(({ status }) => status)).toContain(503)
    else expect((await desk.ask('PUT /v1/limits/day', dayLimit(1_001 + at))).status).toBe(200)
    for (const { status, headers, body } of answers) {
      const unnamed = [503, expect.any(String), expect.not.stringContaining('GRANT')]
      if (status !== 200) expect([status, headers.get('retry-after'), body.detail]).toEqual(unnamed)
    }
    await untilNamed(
      `GRANT ${grant} TO weir_console`,
      async () => (await (await fetch(`${desk.ops}/readyz`)).text()) + (await desk.readLog()),
    )
    secure.refuse = () => undefined
    for (const path of await questions(client)) expect((await desk.ask(`GET /v1/${path}`)).status).toBe(200)
    await desk.close()
  }
}, 600_000)

test('a password or an authority that is replaced is used without a restart, and a wrong one is named and waited for', async () => {
  const metering = await start('metering')
  const user = 'weir_metering'
  const counted = async () => {
    await send(topics.decisions, journal.take(10))
    const wanted = rowsSent.get(topics.decisions) ?? 0
    return async () => {
      await until(async () => (await countOf('decisions')) === wanted)
      await until(async () => (await metering.ready()).status === 200)
    }
  }
  const { authority } = secure
  const other = await createAuthority(kafka.dir, 'other')
  const own = await readFile(authority.caFile)
  const faults: readonly [what: string, wrong: () => unknown, right: () => unknown][] = [
    [
      'see WEIR_CLICKHOUSE_PASSWORD_FILE',
      () => secure.passwords.set(user, 'new'),
      () => writeFile(secure.passwordFileOf(user), 'new\n'),
    ],
    [
      'a CA that WEIR_CLICKHOUSE_TLS_CA holds',
      () => secure.useCertificateOf(other),
      () => copyFile(other.caFile, authority.caFile),
    ],
  ]
  for (const [what, wrong, right] of faults) {
    await wrong()
    const allCounted = await counted()
    await untilNamed(what, saidBy(metering))
    expect((await metering.ready()).status).toBe(503)
    await right()
    await allCounted()
  }
  await writeFile(authority.caFile, own)
  await secure.useCertificateOf(authority)
  await (await counted())()
  expect(metering.said()).not.toContain('new')
}, 300_000)

test.each([
  ['http to a port that speaks TLS', () => secure.url.replace('https', 'http'), 'must begin with https://'],
  ['https to a port that speaks none', () => secure.server.address.replace('http', 'https'), 'speaks no TLS'],
  ['an authority that Node does not know', () => secure.url, 'is not from a CA that WEIR_CLICKHOUSE_TLS_CA holds'],
])('%s is reported with the variable to change', async (_, url, what) => {
  const one = connectClickhouse(url(), 'test')
  await expect(one.command({ query: 'SELECT 1' })).rejects.toThrow(what)
  expect(await clickhouseMissing(one)).toContain(what)
  messages.push(`${what}\n    ${await clickhouseMissing(one)}`)
  await one.close()
})
afterAll(() => void process.stdout.write(`${messages.join('\n')}\n`))
