import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import { createRecordSender } from '@weir/kafka/send-records.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, describe, expect, it } from 'vitest'
import { decisionInput } from '../../support/audit/decisions.ts'
import { startAuditStack } from '../../support/audit/stack.ts'
import { folderForFile, forFile } from '../../support/opened.ts'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { startServiceProcess } from '../../support/service-process.ts'
import { runWeir } from '../../support/weir-up.ts'

const deadlineMs = 60_000

const subject = 'acme'
const journal = '0198c1d2-0000-4000-8000-0000000000aa'
const whole = (seq: number, more: object = {}) => {
  const record = JSON.parse(`${encodeDecisionOpen(decisionInput({ subject, tsMs: Date.now(), cost: 7 }))}}`)
  return JSON.stringify({ ...record, ...more, journal, seq })
}

const dir = await folderForFile('dlq')
const stack = await forFile(startAuditStack())
const sender = createRecordSender(kafkaOptions(stack.kafka.address))
// Good ones around two that are none: more than 1% bad would stop the partition.
const values = [
  ...Array.from({ length: 300 }, (_, seq) => whole(seq)),
  '{"v":1,"id":',
  whole(301, { outcome: 'maybe' }),
]
await sender.send(
  topics.decisions,
  values.map((value) => ({ key: subject, value })),
)
await sender.close()
const metering = await startServiceProcess('metering', stack.environment)
afterAll(() => metering.kill('SIGKILL'))

const dlq = (...args: string[]) => runWeir(['dlq', ...args], stack.environment)

interface Listed {
  readonly count: number
  readonly letters: readonly { readonly partition: number; readonly offset: number; readonly reason: string }[]
}

async function listed(): Promise<Listed> {
  const { code, stdout, stderr } = await dlq('ls', '--json')
  if (code !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}

/** Units of the rows and of a rollup. */
const sums = async () =>
  (
    await stack.rows<{ n: number; raw: number; rollup: number }>(
      `SELECT toUInt32(count()) AS n, toUInt32(sum(cost)) AS raw,
        (SELECT toUInt32(sum(cost)) FROM weir.usage_15m) AS rollup FROM weir.decisions`,
    )
  )[0]

describe('dead letters', () => {
  it('are listed with their places and reasons, and shown as they came', async () => {
    const letters = await waitUntil(
      async () => {
        const found = await listed()
        return found.count === 2 ? found.letters : undefined
      },
      { deadlineMs, everyMs: 1_000 },
    )
    expect(letters).toMatchObject([{ offset: 300, reason: expect.any(String) }, { offset: 301 }])
    const { partition } = letters?.[0] ?? { partition: -1 }
    const shown = await dlq('show', '--partition', String(partition), '--offset', '300')
    expect([shown.code, shown.stdout]).toEqual([0, '{"v":1,"id":\n'])
    const nowhere = await dlq('show', '--partition', String(partition), '--offset', '9')
    expect([nowhere.code, nowhere.stderr]).toEqual([2, expect.stringContaining('weir dlq ls')])
  })

  it('are replayed once corrected, count once, and a second replay is refused', async () => {
    const { partition } = (await listed()).letters[1] ?? { partition: -1 }
    const place = ['--partition', String(partition), '--offset', '301']
    const asItIs = await dlq('replay', ...place)
    expect([asItIs.code, asItIs.stderr]).toEqual([1, expect.stringContaining('outcome is missing or wrong')])
    const file = join(dir, 'fixed.json')
    await writeFile(file, whole(301))
    const before = await sums()
    expect(before).toEqual({ n: 300, raw: 2_100, rollup: 2_100 })
    // At the same time, as two people who do not know of each other.
    const both = await Promise.all([1, 2].map(() => dlq('replay', ...place, '--value', file, '--json')))
    expect(both.some(({ code, stdout }) => code === 0 && JSON.parse(stdout).metered)).toBe(true)
    const again = await dlq('replay', ...place, '--value', file)
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('REPLAY_REFUSED')])
    expect(await sums()).toEqual({ n: 301, raw: 2_107, rollup: 2_107 })
  })
})
