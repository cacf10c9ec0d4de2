import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { countAlerts } from '../support/failure/alerts.ts'
import { exactly, playScenario } from '../support/failure/scenario.ts'
import { type Stack, startStack } from '../support/failure/stack.ts'
import { crashAt } from '../support/failure/strikes.ts'
import { projectRoot } from '../support/weir-up.ts'

let stack: Stack
beforeAll(async () => {
  stack = await startStack()
})
afterAll(() => stack?.close())

/** Where the orders of effects of each service are written. */
const sources = {
  alerting: ['services/alerting/src'],
  metering: ['services/metering/src'],
  ingress: ['services/ingress/src', 'packages/kafka/src/journal'],
} as const
type Service = keyof typeof sources

/** Every `crash('step')` in the sources: a step that is added is killed at. */
function stepsOf(service: Service): string[] {
  const files = sources[service].flatMap((folder) =>
    readdirSync(join(projectRoot, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
      .map((file) => readFileSync(join(projectRoot, folder, file), 'utf8')),
  )
  const found = files.flatMap((text) =>
    [...text.matchAll(/\bcrash\w*(?:\?\.)?\(\s*'([\w.]+)'/g)].map(([, step = '']) => step),
  )
  return [...new Set(found)]
}

const points = (Object.keys(sources) as Service[]).flatMap((service) =>
  stepsOf(service).map((step) => [service, step] as const),
)

describe('kill -9 at every numbered step of the orders of effects', () => {
  it.for(points)(
    'of %s, after %s: every answered decision is counted once, and every alert is out once',
    async ([name, step]) => {
      const { row, load } = await playScenario(stack, {
        fault: `kill -9 of ${name} after step ${step}`,
        perSecond: 1_500,
        async strike({ random }) {
          // The first time, and one of those in full flow.
          await crashAt(stack, name, `${name}.${step}`, 1)
          await crashAt(stack, name, `${name}.${step}`, random.integer(2, 4))
        },
      })
      expect(row).toEqual(exactly(row))
      const { due, raised, delivered } = await countAlerts(stack, load.quotaSubjects)
      expect({ raised, delivered }).toEqual({ raised: due, delivered: due })
    },
  )
})
