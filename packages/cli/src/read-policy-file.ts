import { readFileSync } from 'node:fs'
import { WeirError } from '@weir/core/errors.ts'

/** The text of a policy; an error that names the file if it cannot be read. */
export function readPolicyFile(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    const plain = why === 'ENOENT' ? 'there is no such file' : why
    throw new WeirError(
      'POLICY_INVALID',
      `The policy ${file} cannot be read: ${plain}. Name one with --policy FILE.`,
      error,
    )
  }
}
