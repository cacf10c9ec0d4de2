/** A file of the repository: its path from the root, with slashes, and its whole text. */
export interface SourceFile {
  readonly path: string
  readonly text: string
}

/** One broken rule at one place. */
export interface Finding {
  readonly path: string
  /** Counted from 1; 0 when the file as a whole is meant. */
  readonly line: number
  readonly rule: string
  readonly what: string
}

/** The line, from 1, of a position in a text. */
export function lineAt(text: string, position: number): number {
  let line = 1
  for (let at = text.indexOf('\n'); at !== -1 && at < position; at = text.indexOf('\n', at + 1)) line += 1
  return line
}

/** Findings as a person reads them, one a line; empty when all is well. */
export function formatFindings(findings: readonly Finding[]): string[] {
  return findings.map(({ path, line, rule, what }) => `${line === 0 ? path : `${path}:${line}`}  ${rule}: ${what}`)
}

/** Tests may do what running code may not: read the environment, use devDependencies. */
export const isTestPath = (path: string): boolean => path.startsWith('test/') || path.endsWith('.test.ts')
