import { parsePolicy } from '@weir/policy/reader/parse-policy.ts'
import { type ImportResult, type InputFile, importedText, inShadow } from '../imported-policy.ts'

type Imported = Extract<ImportResult, { kind: 'imported' }>

/** What a file of this text becomes. Throws what is wrong with it. */
export function imported(importer: (files: readonly InputFile[]) => ImportResult, text: string): Imported {
  const result = importer([{ name: 'file', text }])
  if (result.kind === 'problems') throw new Error(JSON.stringify(result.problems))
  return result
}

/** The problems that `weir check` has with an imported policy, in shadow too. */
export const problemsOf = (policy: Imported['policy'], notes: Imported['notes']) =>
  [policy, inShadow(policy)].flatMap((one) => {
    const parsed = parsePolicy(importedText(one, notes), 'weir.yaml')
    return parsed.kind === 'problems' ? parsed.problems : []
  })
