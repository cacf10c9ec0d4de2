import { parsePolicy } from '@weir/policy/reader/parse-policy.ts'
import { expect } from 'vitest'
import { type ImportResult, type InputFile, importedText, inShadow } from '../imported-policy.ts'

type Imported = Extract<ImportResult, { kind: 'imported' }>

/** What a file of this text becomes. Throws what is wrong with it. */
export function imported(importer: (files: readonly InputFile[]) => ImportResult, text: string): Imported {
  const result = importer([{ name: 'file', text }])
  if (result.kind === 'problems') throw new Error(JSON.stringify(result.problems))
  return result
}

/** Expects that `weir check` accepts an imported policy, in shadow too. */
export function expectValid(policy: Imported['policy'], notes: Imported['notes']): void {
  for (const one of [policy, inShadow(policy)]) {
    const parsed = parsePolicy(importedText(one, notes), 'weir.yaml')
    expect(parsed.kind === 'problems' && parsed.problems).toBe(false)
  }
}
