import { readFileSync } from 'node:fs'
import { inProject } from '@weir/cli/project.ts'
import { connectClickhouse } from '@weir/clickhouse/connect.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { countAlerts } from '../../support/failure/alerts.ts'
import { failurePolicy } from '../../support/failure/failure-policy.ts'
import { exactly, playScenario, type Scene } from '../../support/failure/scenario.ts'
import { type Stack, startStack } from '../../support/failure/stack.ts'
import { killAtRandom } from '../../support/failure/strikes.ts'
import { expectHundredOfThousand, expectTwoAlerts, type Pipeline } from '../../support/pipeline.ts'
import { type SecuredServers, startSecuredServers } from '../../support/secured/servers.ts'
import { runWeir } from '../../support/weir-up.ts'

/**
 * The demo's subjects and those of the failure suite, without the limit that all share: alerts are counted by what a
 * subject used.
 */
function policyText(): string {
  const [demo, failure] = [parse(readFileSync(inProject('weir.yaml'), 'utf8')), parse(failurePolicy())]
  delete demo.limits['per-ip']
  const sections = ['plans', 'limits', 'subjects'].map((name) => [name, { ...demo[name], ...failure[name] }])
  return JSON.stringify({ ...demo, ...Object.fromEntries(sections) })
}

let servers: SecuredServers
let stack: Stack
let pipeline: Pipeline
beforeAll(async () => {
  servers = await startSecuredServers()
  const { environment, environmentOf } = servers
  stack = await startStack({ environment, environmentOf, policy: policyText() })
  const { ports, secrets, kafka, addresses } = stack
  pipeline = {
    ingress: `http://127.0.0.1:${ports.ingress}`,
    receiver: `http://127.0.0.1:${ports.receiver}`,
    demoKey: secrets.demoKey,
    demoSmallKey: secrets.demoSmallKey,
    kafka,
    clickhouse: connectClickhouse(addresses.clickhouse, 'test'),
  }
})
afterAll(async () => {
  await pipeline?.clickhouse.close()
  await stack?.close()
  await servers?.close()
})

const services = ['ingress', 'metering', 'alerting', 'console']
/** The variables of its passwords. */
const passwordFilesOf = (name: string) => [
  'WEIR_KAFKA_SASL_PASSWORD_FILE',
  ...(name === 'metering' ? [] : ['WEIR_REDIS_URL_FILE']),
  ...(name === 'ingress' ? [] : ['WEIR_CLICKHOUSE_PASSWORD_FILE']),
]
const pids = () => services.map((name) => stack.pid(name))
/** A connection is tried again within 5 s; a consumer joins its group again within its session. */
const backDeadlineMs = 90_000

async function readiness(name: string): Promise<string> {
  const answer = await fetch(`${stack.opsAddress(name)}/readyz`).catch(String)
  return typeof answer === 'string' ? answer : `${answer.status} ${await answer.text()}`
}

async function untilEach(isSo: (name: string, said: string) => boolean): Promise<void> {
  let said: string[] = []
  const are = async () => {
    said = await Promise.all(services.map(readiness))
    return services.every((name, at) => isSo(name, said[at] ?? ''))
  }
  if (!(await waitUntil(are, { deadlineMs: backDeadlineMs }))) throw new Error(said.join('\n'))
}

async function expectExact(fault: string, strike: (scene: Scene) => Promise<void>): Promise<void> {
  const { row, load } = await playScenario(stack, { fault, perSecond: 500, strike })
  expect(row).toEqual(exactly(row))
  const { due, raised, delivered } = await countAlerts(stack, load.quotaSubjects)
  expect({ raised, delivered }).toEqual({ raised: due, delivered: due })
}

describe('on secured servers, each service with a user of the least rights', () => {
  it('weir check finds the environment of each service right', async () => {
    for (const name of services) {
      const own = name === 'ingress' ? { WEIR_JOURNAL_DIR: stack.dir } : {}
      const { code, stdout } = await runWeir(['check', '--service', name], { ...servers.environmentOf(name), ...own })
      expect([code, stdout]).toEqual([0, expect.stringContaining(`environment: right for ${name}\n`)])
    }
  })

  it('exactly 100 of 1,000 requests are allowed, and every one of them is counted once in Kafka, raw and rollups', () =>
    expectHundredOfThousand(pipeline))

  it('a quota of 20 a day raises exactly two alerts, and two webhooks', () => expectTwoAlerts(pipeline))

  it('a kill -9 of every process loses nothing, counts nothing twice, and raises every alert once', () =>
    expectExact('kill -9 of every process, on secured servers', async (scene) => {
      await Promise.all([
        ...services.map((name) => killAtRandom(scene, name, 1)),
        ...(['kafka', 'redis', 'clickhouse'] as const).map((name) => servers.restart(name)),
      ])
    }))

  it('passwords that change lose nothing and need no restart, also where every connection ends before the files are new', () =>
    expectExact('passwords changed, on secured servers', async ({ load }) => {
      const before = pids()
      await (await servers.changePasswords())()
      await load.forMs(1_000)
      await untilEach((_, said) => said.startsWith('200'))

      const writeFiles = await servers.changePasswords()
      await servers.closeConnections()
      await untilEach((name, said) => passwordFilesOf(name).every((variable) => said.includes(variable)))
      await writeFiles()
      await untilEach((_, said) => said.startsWith('200'))
      expect(pids()).toEqual(before)
    }))

  it('what is in Kafka is in ClickHouse, by an audit whose user may only read', async () => {
    const { code, stdout, stderr } = await runWeir(['audit', '--data', stack.dir], servers.environmentOf('audit'))
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: '',
      stderr: expect.stringContaining('nothing differs'),
    })
    expect(stderr).toMatch(/compared [1-9]\d+ offsets of Kafka/)
  })
})
