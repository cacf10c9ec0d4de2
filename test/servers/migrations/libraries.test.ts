import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { listenForTest } from '../../support/listen.ts'
import { playTraffic, type Seen, type Step } from '../../support/migrations/play-traffic.ts'
import { openPolicyServers, untilWindowHasRoom } from '../../support/migrations/policy-servers.ts'
import { guideFile, startGuideProgram } from '../../support/migrations/start-program.ts'
import { forFile } from '../../support/opened.ts'
import { readMetric } from '../../support/read-metric.ts'
import { until } from '../../support/until.ts'

/** The traffic of a guide, with what its library answered. */
interface Run {
  readonly guide: string
  readonly about: string
  /** What the guide's app shows to Weir. */
  readonly token: string
  readonly windowHours: number
  readonly environment?: Readonly<Record<string, string>>
  readonly steps: readonly RecordedStep[]
}

interface RecordedStep extends Step {
  readonly statuses: Seen['statuses']
  readonly remaining?: Seen['remaining']
  /** The statuses of Weir, where it differs. */
  readonly weir?: Seen['statuses']
}

const answers = readFileSync(join(import.meta.dirname, 'library-answers.yaml'), 'utf8')
const runs: readonly Run[] = parse(answers, (key, value) => (key === 'body' ? Buffer.from(String(value)) : value))
const policyOf = (guide: string, name: string) => readFileSync(guideFile(`${guide}/${name}.yaml`), 'utf8')
const hourMs = 60 * 60_000

const servers = await forFile(openPolicyServers())

test.each(runs)('The guide from $guide: two processes with Weir answer $about as recorded', async (run) => {
  const { guide, token, windowHours, environment, steps } = run
  const weir = await servers.startWeir(policyOf(guide, 'weir'), environment)
  const start = () => startGuideProgram(`${guide}/after.mjs`, { WEIR_URL: weir.api, WEIR_KEY: token })
  const processes = [await start(), await start()]
  await untilWindowHasRoom(windowHours * hourMs)
  const seen = await playTraffic(processes, steps)
  const recorded = steps.map(({ what, statuses, remaining = expect.anything(), weir: own = statuses }) => ({
    what,
    statuses: own,
    remaining,
  }))
  expect(seen).toEqual(recorded)
})

/** The app of a guide without any limiter, as far as its statuses go. */
async function startUnlimited(): Promise<string> {
  const server = createServer(({ url }, response) => {
    response.writeHead(url === '/api/broken' ? 500 : 200).end()
  })
  return `http://127.0.0.1:${await listenForTest(server)}`
}

test.each(['express-rate-limit', 'fastify-rate-limit'])(
  'The ingress as a proxy answers as recorded of %s, without a library in the app',
  async (guide) => {
    const { environment, steps = [] } = runs.find((run) => run.guide === guide) ?? {}
    const upstream = await startUnlimited()
    const policy = policyOf(guide, 'proxy').replace('http://127.0.0.1:3000', upstream)
    const weir = await servers.startWeir(policy, environment)
    await untilWindowHasRoom(hourMs)
    // The limit by user stays in the app.
    for (const step of steps.filter(({ sent }) => sent.path !== '/login')) {
      const [seen] = await playTraffic([weir.proxy], [step])
      expect([step.what, seen?.statuses]).toEqual([step.what, step.statuses])
      // The proxy gives back after it has answered.
      const isGivenBack = async () =>
        (await readMetric(weir.ops, 'weir_corrections_total')) === (step.statuses[500] ?? 0)
      if (500 in step.statuses) await until(isGivenBack, 10_000)
    }
  },
)
