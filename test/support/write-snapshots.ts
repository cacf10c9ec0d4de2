import { entitiesOf } from '@weir/policy/state/entities-of.ts'
import { PolicyState } from '@weir/policy/state/policy-state.ts'
import { writeSnapshot } from '@weir/policy-feed/snapshot-file.ts'

// Writes one snapshot after the other to the path it is given, each of another number of subjects, until it is killed.

const [path = ''] = process.argv.slice(2)
const subjectsMax = 2_000

for (let count = 0; ; count += 1) {
  const subjects = Object.fromEntries(
    Array.from({ length: 1 + (count % subjectsMax) * 7 }, (_, at) => [`subject-${at}`, { plan: 'free' }]),
  )
  const parsed = entitiesOf(JSON.stringify({ version: 1, plans: { free: { limits: [] } }, subjects }), 'weir.yaml')
  const state = new PolicyState()
  if (parsed.kind === 'problems' || state.load(parsed.entities).kind === 'problems') throw new Error('no policy')
  const checkpoint = { offset: BigInt(state.count('subject')), id: 'one' }
  await writeSnapshot(path, state, Date.now(), () => ({ checkpoint, later: [] }))
}
