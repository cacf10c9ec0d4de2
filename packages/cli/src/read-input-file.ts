import { readFileSync } from 'node:fs'
import { type ErrorCode, WeirError } from '@weir/core/errors.ts'

/** Reads a file that a person named. Throws `code` with the file's name and the reason if the file cannot be read. */
export function readInputFile(file: string, code: ErrorCode, what: string, hint = ''): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    const plain = why === 'ENOENT' ? 'there is no such file' : why
    throw new WeirError(code, `${what} cannot be read: ${plain}.${hint}`, error)
  }
}

/** Reads the text of a policy. Throws POLICY_INVALID if the file cannot be read. */
export const readPolicyFile = (file: string): string =>
  readInputFile(file, 'POLICY_INVALID', `The policy ${file}`, ' Name one with --policy FILE.')
