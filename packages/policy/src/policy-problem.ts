/** One thing that is wrong with a policy, at the position where a person fixes it. Lines and columns count from 1. */
export interface PolicyProblem {
  readonly file: string
  readonly line: number
  readonly column: number
  /** `limits.minute.size`; empty for a problem of the file as a whole. */
  readonly path: string
  readonly message: string
}

/**
 * One line for people and editors, `weir.yaml:12:9  limits.minute.size: must be …`. Never holds a key or a password.
 */
export function formatProblem({ file, line, column, path, message }: PolicyProblem): string {
  return `${file}:${line}:${column}  ${path === '' ? '' : `${path}: `}${message}`
}
