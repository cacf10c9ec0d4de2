import { statementSettings } from '@weir/clickhouse/statement-settings.ts'
import { expect } from 'vitest'
import { formOf } from './clickhouse-grants.ts'
import type { ClickhouseProxy, SentStatement } from './clickhouse-proxy.ts'

const isRead = ({ text }: SentStatement) => /^\s*(?:SELECT|WITH)/.test(text)
/** Of a server as it is at the moment; and pings, of which nothing is read. */
const isUnsteady = ({ text }: SentStatement) => /system\.disks|uptime\(\)|^SELECT 'ping'/.test(text)
/** Reads of a form and user that are replayed; all writes are. */
const ofFormMax = 2

type Settings = Readonly<Record<string, string>>

/** The opposite of what statements are sent with, for all that have one. */
function opposites(): Settings {
  const others: Settings = { 0: '1', 1: '0', throw: 'break' }
  const switches = Object.entries(statementSettings).flatMap(([name, value]) => {
    const other = others[String(value)]
    return other === undefined ? [] : [[name, other] as const]
  })
  return {
    ...Object.fromEntries(switches),
    session_timezone: 'Asia/Kathmandu',
    date_time_input_format: 'basic',
    date_time_output_format: 'iso',
    date_time_overflow_behavior: 'throw',
    union_default_mode: 'DISTINCT',
    join_default_strictness: 'ANY',
    count_distinct_implementation: 'uniq',
    default_materialized_view_sql_security: 'INVOKER',
  }
}

/** Of a user's profile, in the engine's own file. */
const profiles: readonly Settings[] = [
  ...['20.3', '22.8', '23.8', '24.3', '25.3'].map((compatibility) => ({ compatibility })),
  { enable_analyzer: '0' },
]

/** Answers to all statements, then what each table holds; with rows in one order, and without the database's name. */
async function replay(
  secure: ClickhouseProxy,
  statements: readonly SentStatement[],
  from: string,
  to: string,
  settings: Settings = {},
) {
  const rename = (text: string) => text.replaceAll(from, to)
  const ask = async (one: SentStatement, more = settings) => {
    const { pathname, searchParams } = new URL(rename(one.path), 'http://localhost')
    searchParams.delete('query_id')
    const unsaid = Object.entries(more).filter(([name]) => !searchParams.has(name))
    for (const [name, value] of unsaid) searchParams.set(name, value)
    const body = Buffer.from(rename(one.body.toString()))
    const answer = await secure.repeat({ ...one, path: `${pathname}?${searchParams}`, body })
    return answer
      .replaceAll(/ Maybe you meant \w+\?\./g, '')
      .replaceAll(to, from)
      .split('\n')
      .sort()
      .join('\n')
  }
  const answers: string[] = []
  for (const one of statements) answers.push(await ask(one))
  const query = (text: string) => ask({ user: '', text, path: '/', body: Buffer.from(text) }, {})
  const columns = await query(`SELECT table, groupArray(if(startsWith(type, 'AggregateFunction'),
      'finalizeAggregation(' || name || ')', name)) FROM system.columns WHERE database = '${from}'
    AND default_expression NOT LIKE '%now%' AND table NOT LIKE '%_mv' GROUP BY table`)
  for (const line of columns.split('\n').filter(Boolean)) {
    const [table = '', names = ''] = line.split('\t')
    const list = names.replaceAll(/['[\]]/g, '')
    answers.push(await query(`SELECT '${table}', sum(cityHash64(toString(tuple(${list})))) FROM ${from}.${table}`))
  }
  return answers
}

/**
 * Replays what was sent to a database in databases of their own, the migrations first, each under the profile of
 * another kind of user: every answer and every table is as under none. Says so in a table.
 */
export async function expectSameAnswers(secure: ClickhouseProxy, database: string): Promise<void> {
  const seen = new Map<string, number>()
  const statements = secure.sent.filter((one) => {
    const form = `${one.user} ${formOf(one)}`
    seen.set(form, (seen.get(form) ?? 0) + 1)
    return !isUnsteady(one) && (!isRead(one) || (seen.get(form) ?? 0) <= ofFormMax)
  })
  const usual = await replay(secure, statements, database, 'replayed')
  const expectSame = async (name: string, answers: readonly string[]) => {
    const differing = answers.flatMap((answer, at) => {
      const of = statements[at]?.text.slice(0, 200)
      return answer === usual[at] ? [] : [[of, usual[at]?.slice(0, 200), answer.slice(0, 200)]]
    })
    expect([name, differing]).toEqual([name, []])
    process.stdout.write(`${name}: ${answers.length} answers and tables, ${differing.length} differ\n`)
  }
  // The local server asks its engine by itself, which would not start: so these are the request's, behind its own.
  const opposite = opposites()
  const answers = await replay(secure, statements, database, 'replayed_other', opposite)
  await expectSame(`the opposite of ${Object.keys(opposite).length} settings`, answers)
  for (const [at, profile] of profiles.entries()) {
    await secure.useProfile(profile)
    await expectSame(JSON.stringify(profile), await replay(secure, statements, database, `replayed_${at}`))
  }
  await secure.useProfile({})
}
