import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import { describe, expect, it } from 'vitest'
import { countAlerts } from '../support/failure/alerts.ts'
import { type CrashStep, crashScenarios, crashSteps, elsewhere } from '../support/failure/crash-steps.ts'
import { exactly, playScenario } from '../support/failure/scenario.ts'
import { startStack } from '../support/failure/stack.ts'
import { crashTwiceAt } from '../support/failure/strikes.ts'
import { forFile } from '../support/opened.ts'

const stack = await forFile(startStack({ oneOfEach: true }))

/** Where orders of effects are written. */
const folders = ['services', 'packages/journal/src']

/** Every `crash('step')` of the sources. */
function stepsInSources(): string[] {
  const files = folders.flatMap((folder) =>
    readdirSync(join(projectRoot, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts') && !file.includes('node_modules'))
      .map((file) => readFileSync(join(projectRoot, folder, file), 'utf8')),
  )
  return files.flatMap((text) => [...text.matchAll(/\bcrash(?:\?\.)?\(\s*'([\w.]+)'/g)].map(([, step = '']) => step))
}

describe('kill -9 at every numbered step of the orders of effects', () => {
  it('leaves none out that the sources have', () => {
    const known = [...crashSteps.map(({ at }) => at.slice(at.indexOf('.') + 1)), ...elsewhere]
    expect([...new Set(stepsInSources())].filter((step) => !known.includes(step))).toEqual([])
  })

  const scenarios = crashScenarios().map((parts) => ({
    parts,
    name: parts
      .flat()
      .map(({ at }) => at)
      .join(', '),
  }))

  it.for(scenarios)(
    '$name: every answered decision is counted once, every alert is out once',
    async ({ name, parts }) => {
      const { row, load } = await playScenario(stack, {
        fault: `kill -9 at ${name}`,
        perSecond: 1_000,
        async strike(scene) {
          const crashAll = async (steps: readonly CrashStep[]) => {
            for (const step of steps)
              await crashTwiceAt(scene, step, step.isRare === true ? 1 : scene.random.integer(1, 3))
          }
          await Promise.all(parts.map(crashAll))
        },
      })
      expect(row).toEqual(exactly(row))
      const { due, raised, delivered } = await countAlerts(stack, load.quotaSubjects)
      expect({ raised, delivered }).toEqual({ raised: due, delivered: due })
    },
  )
})
