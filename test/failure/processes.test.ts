import { expect, it } from 'vitest'
import { countAlerts } from '../support/failure/alerts.ts'
import { exactly, playScenario, type Scene } from '../support/failure/scenario.ts'
import { startStack } from '../support/failure/stack.ts'
import { freeze, killAtRandom } from '../support/failure/strikes.ts'
import { forFile } from '../support/opened.ts'

/** Two ingress processes on one journal directory: none takes over what the other still writes. */
const stack = await forFile(startStack({ ingress: 2, moreMetering: 2 }))

/** Of each part. */
const kills = 4
/** Twice the session: the group has long given the partitions of a frozen process to another member. */
const frozenMs = 12_000
/** A member leaves or comes about every two seconds, by SIGTERM and by SIGKILL in turn. */
const changes = 8

/** A stop by SIGTERM leaves the group in order; the supervisor starts the process again all the same. */
async function changeGroup({ load, random }: Scene): Promise<void> {
  for (let change = 0; change < changes; change += 1) {
    await load.forMs(random.integer(1_000, 3_000))
    const name = random.pick(['metering', 'metering-2', 'metering-3'])
    const before = stack.pid(name)
    stack.signal(name, change % 2 === 0 ? 'SIGTERM' : 'SIGKILL')
    await stack.backAfter(name, before)
  }
}

/** What a part that was frozen still holds changes nothing when it goes on. */
const faults: Readonly<Record<string, (scene: Scene) => Promise<unknown>>> = {
  [`the group of 3 metering processes changes every few seconds, ${changes} times`]: changeGroup,
  ...Object.fromEntries(
    [
      ['metering', 'alerting', 'console'],
      ['ingress', 'kafka'],
      ['ingress', 'ingress-2'],
      ['clickhouse', 'redis'],
    ].map((names) => [
      `kill -9 of ${names.join(' and ')}, ${kills} times each`,
      (scene: Scene) => Promise.all(names.map((name) => killAtRandom(scene, name, kills))),
    ]),
  ),
  ...Object.fromEntries(
    [['metering', 'alerting'], ['ingress', 'clickhouse'], ['kafka'], ['redis']].map((names) => [
      `SIGSTOP of ${names.join(' and ')} for ${frozenMs / 1_000} s, then SIGCONT`,
      (scene: Scene) => Promise.all(names.map((name) => freeze(scene, name, frozenMs))),
    ]),
  ),
}

it.for(Object.entries(faults))(
  '%s: every answered decision is counted once, in raw and in every rollup, and every alert is out once',
  async ([fault, strike]) => {
    const { row, load } = await playScenario(stack, {
      fault,
      perSecond: 500,
      strike: async (scene) => void (await strike(scene)),
    })
    expect(row).toEqual(exactly(row))
    const { due, raised, delivered } = await countAlerts(stack, load.quotaSubjects)
    expect({ raised, delivered }).toEqual({ raised: due, delivered: due })
  },
)
