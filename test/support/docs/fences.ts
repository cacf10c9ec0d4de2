import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'

/** A block of code of a document. */
export interface Fence {
  readonly path: string
  /** Of its first line of code, from 1. */
  readonly line: number
  readonly language: string
  readonly text: string
  /** Why it is not run, as the comment above it says: `<!-- not run: … -->`. */
  readonly notRun: string | undefined
}

const documents = (): string[] => [
  'README.md',
  ...readdirSync(join(projectRoot, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md') && !path.includes('node_modules'))
    .map((path) => `docs/${path}`)
    .toSorted(),
]

/** Every block of code of a document, without the indent of the list that it is in. */
export function fencesOf(path: string, text: string): Fence[] {
  const pattern = /(?:^ *<!-- not run: (.+) -->\n+)?^( *)```(\S*).*\n([\s\S]*?)^ *```$/gm
  return [...text.matchAll(pattern)].map(
    ({ index, 0: whole, 1: notRun, 2: indent = '', 3: language = '', 4: code = '' }) => ({
      path,
      line: text.slice(0, index + whole.indexOf('```')).split('\n').length + 1,
      language,
      text: code.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
      notRun,
    }),
  )
}

/** Those of the README and of all pages in docs. */
export const allFences: readonly Fence[] = documents().flatMap((path) =>
  fencesOf(path, readFileSync(join(projectRoot, path), 'utf8')),
)

/** How a test names it. */
export const placeOfFence = ({ path, line }: Fence): string => `${path}:${line}`
