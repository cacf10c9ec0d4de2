import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { keySlot } from '@weir/redis/key-slot.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, it } from 'vitest'
import { failOver } from '../support/failure/fail-over.ts'
import { failurePolicy } from '../support/failure/failure-policy.ts'
import { weirAudit } from '../support/failure/hand-damage.ts'
import { exactly, playScenario } from '../support/failure/scenario.ts'
import { startStack } from '../support/failure/stack.ts'
import { untilRestored } from '../support/failure/until-restored.ts'
import { forFile } from '../support/opened.ts'
import { startCluster } from '../support/servers/redis-cluster.ts'

const policy = failurePolicy({ withHolds: true })
const cluster = await forFile(startCluster({ replicas: 1 }))
const stack = await forFile(startStack({ policy, environment: { WEIR_REDIS_URL: cluster.urlOfAll } }))

// A console restores first when it starts: only what a move restores is to be seen here.
await untilRestored(stack)

/** A team that is moved to the other company and back, and for good. */
const team = 'team-0'
const moves = ['company-1', 'company-0', 'company-1'] as const

async function moveTeam(parent: string): Promise<void> {
  const { ports, secrets } = stack
  const response = await fetch(`http://127.0.0.1:${ports.console}/v1/subjects/${team}`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${secrets.adminToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({ plan: 'team', parent }),
  })
  expect([response.status, await response.text()]).toEqual([200, expect.stringContaining(parent)])
}

/** The policy's file with the team where it is now. */
function movedFile(parent: string): string {
  const file = join(stack.dir, 'moved.yaml')
  writeFileSync(
    file,
    policy.replace(`${team}: { plan: team, parent: company-0 }`, `${team}: { plan: team, parent: ${parent} }`),
  )
  return file
}

/** The console raises counts in several passes, the last of them half a minute behind a loss or a move. */
async function expectCleanAudit(parent: string): Promise<void> {
  const policyFlags = ['--policy', movedFile(parent)]
  let audit = await weirAudit(stack, ...policyFlags)
  const isClean = async () => {
    if (audit.findings.length > 0) audit = await weirAudit(stack, ...policyFlags)
    return audit.findings.length === 0
  }
  await waitUntil(isClean, { deadlineMs: 120_000, everyMs: 1_000 })
  process.stdout.write(`  audit compared ${JSON.stringify(audit.compared)}, above ${JSON.stringify(audit.above)}\n`)
  expect(audit.findings).toEqual([])
}

it('a team that is moved between trees under load: every decision is counted once, and every quota is as used', async () => {
  const { row } = await playScenario(stack, {
    fault: `a team is moved between trees ${moves.length} times`,
    perSecond: 400,
    withHolds: true,
    async strike({ load, random }) {
      for (const parent of moves) {
        await load.forMs(random.integer(1_000, 3_000))
        await moveTeam(parent)
      }
    },
  })
  expect(row).toEqual(exactly(row))
  await expectCleanAudit('company-1')
})

it('trees on a Cluster whose masters are killed: every decision is counted once, and every quota is as used', async () => {
  const { row } = await playScenario(stack, {
    fault: 'a Cluster loses the masters of two trees',
    perSecond: 400,
    withHolds: true,
    async strike({ load, random }) {
      for (const tree of ['company-0', 'company-1']) {
        await load.forMs(random.integer(1_000, 4_000))
        await failOver(cluster, keySlot(`{${tree}}`))
      }
    },
  })
  expect(row).toEqual(exactly(row))
  await expectCleanAudit('company-1')
})
