import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import { decisionInput } from '@weir/contracts/testing/decision-input.ts'
import { expect, onTestFinished, test } from 'vitest'
import { findWrittenCorrections } from './find-corrections.ts'

test('a start finds the corrections in all journals of its folder, those that a dead process had adopted too', async () => {
  const base = await mkdtemp(join(tmpdir(), 'weir-journals-'))
  onTestFinished(() => rm(base, { recursive: true }))
  const wanted = ['dead', 'dead/adopted/older'].map((folder) => ({ folder, id: crypto.randomUUID() }))
  for (const { folder, id } of wanted) {
    const open = encodeDecisionOpen(decisionInput({ count: 0, correction: { corrects: id, adjustment: -1 } }))
    await mkdir(join(base, folder), { recursive: true })
    await writeFile(join(base, folder, '00000001.seg'), `${'\u0007'.repeat(31)}${open},"journal":"j","seq":0}`)
  }
  const found = await findWrittenCorrections(base)
  expect(new Set(found.map(({ id }) => id))).toEqual(new Set(wanted.map(({ id }) => id)))
})
