import type { LoadReport } from '@weir/cli/load/report.ts'
import { expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { runWeir } from '../support/weir-up.ts'
import { wholeWeir } from '../support/whole-weir.ts'

const weir = await wholeWeir()

const load = (...args: readonly string[]) => runWeir(['load', '--data', weir.dir, ...args])

interface Usage {
  readonly rows: readonly { readonly outcome: string; readonly denied_by: string; readonly count: number }[]
}

async function usage(): Promise<Usage['rows']> {
  const path = '/v1/usage?by=outcome,denied_by&step=total&from=now-1h&subject=demo&subject=demo-small'
  const answer = await fetch(weir.line.console + path, { headers: { authorization: `Bearer ${weir.line.adminToken}` } })
  return ((await answer.json()) as Usage).rows
}

test('the shipped demo policy is loaded without any more words, its limits hold, and ClickHouse counts what the load counted', async () => {
  const { code, stdout, stderr } = await load('--rate', '300', '--for', '4s', '--json')
  expect([code, stderr]).toEqual([0, ''])
  const { total, decisions, limits }: LoadReport = JSON.parse(stdout)
  expect(total).toMatchObject({ sent: 1_200, answered: 1_200, failed: 0 })
  expect(limits?.map(({ name, verdict }) => [name, verdict]).toSorted()).toEqual([
    ['day', 'held'],
    ['minute', 'held'],
    ['trial-day', 'held'],
  ])
  // On a busy machine Redis is late at times, and requests are admitted without it.
  const groups = Map.groupBy(decisions, ({ allowed, denied_by }) => `${allowed ? 'allow' : 'deny'} ${denied_by}`)
  const said = Array.from(groups, ([name, all]) => [...name.split(' '), all.reduce((sum, { count }) => sum + count, 0)])
  const counted = async () => {
    const rows = (await usage()).map(({ outcome, denied_by, count }) => [outcome, denied_by, Number(count)])
    return JSON.stringify(rows.toSorted()) === JSON.stringify(said.toSorted())
  }
  await until(counted, 20_000)
})

test('every example in the help of weir load runs', async () => {
  const { stdout } = await runWeir(['load', '--help'])
  const [, listed = ''] = stdout.split('\nExamples:\n')
  const examples = Array.from(listed.matchAll(/^ {2}\.\/weir load (.*?) +# /gm), ([, example = '']) => example)
  expect(examples).toHaveLength(2)
  for (const example of examples) {
    const words = Array.from(example.matchAll(/"([^"]*)"|(\S+)/g), ([, quoted, plain]) => quoted ?? plain ?? '')
    expect([example, (await load(...words)).code]).toEqual([example, 0])
  }
})
