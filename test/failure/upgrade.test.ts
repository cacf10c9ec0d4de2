import { projectRoot } from '@weir/cli/project.ts'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { countAlerts } from '../support/failure/alerts.ts'
import { checkOutRelease } from '../support/failure/released-tree.ts'
import { exactly, playScenario } from '../support/failure/scenario.ts'
import { type Stack, startStack } from '../support/failure/stack.ts'

let release: ReturnType<typeof checkOutRelease>
let stack: Stack
beforeAll(async () => {
  release = checkOutRelease()
  // The tables are this version's from the start: migrations are an upgrade's first step.
  stack = await startStack({ ingress: 2, moreMetering: 1, root: release.root })
}, 900_000)
afterAll(async () => {
  await stack?.close()
  release?.remove()
})

/** In the order of docs/operating.md; back in reverse. */
const order = ['metering', 'metering-2', 'alerting', 'console', 'ingress', 'ingress-2']

it.for([
  ['this version', order],
  ['the release before it', order.toReversed()],
] as const)(
  'to %s, one process after the other under load: nothing is lost, nothing comes twice, no answer is 5xx',
  async ([to, names]) => {
    const root = to === 'this version' ? projectRoot : release.root
    const { row, load } = await playScenario(stack, {
      fault: `each process replaced under load by ${to === 'this version' ? 'the next version' : 'the one before'}`,
      perSecond: 500,
      async strike(scene) {
        for (const name of names) {
          await stack.moveTo(name, root)
          await scene.load.forMs(3_000)
        }
      },
    })
    expect(row).toEqual(exactly(row))
    expect(load.progress).toMatchObject({ undecided: {}, unrecorded: 0 })
    const { due, raised, delivered } = await countAlerts(stack, load.quotaSubjects)
    expect({ raised, delivered }).toEqual({ raised: due, delivered: due })
  },
)
