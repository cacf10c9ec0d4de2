import type { ImportProblem } from './foreign-file.ts'
import type { InputFile } from './imported-policy.ts'
import { type Directive, readNginxFile } from './nginx-file.ts'

/** A file with its path, by which it is included, and its directives. */
interface Part {
  readonly path: string
  readonly directives: readonly Directive[]
}

/** Files that include each other end here. */
const depthMax = 16
/** How `nginx -T` begins each file. */
const marker = /^# configuration file (.+):$/gm

/**
 * Reads files of nginx, and the output of `nginx -T`. An `include` becomes what the files that it matches have, if they
 * are among them; else it stays.
 */
export function readNginxFiles(files: readonly InputFile[]): {
  readonly directives: readonly Directive[]
  readonly problems: readonly ImportProblem[]
} {
  const problems: ImportProblem[] = []
  const parts = files.flatMap(({ name, text }) =>
    dumped(name, text).map((part): Part => {
      const { directives, problem } = readNginxFile(part.text, name, part.line)
      if (problem !== undefined) problems.push(problem)
      return { path: part.path, directives }
    }),
  )
  const included = new Set<Part>()
  const resolved = (directives: readonly Directive[], depth: number): readonly Directive[] =>
    directives.flatMap((one) => {
      if (one.block !== undefined) return { ...one, block: resolved(one.block, depth) }
      const found =
        one.name === 'include' && depth < depthMax ? parts.filter(({ path }) => isMatch(one.args[0], path)) : []
      for (const part of found) included.add(part)
      return found.length === 0 ? one : found.flatMap((part) => resolved(part.directives, depth + 1))
    })
  const whole = parts.map((part) => ({ part, directives: resolved(part.directives, 0) }))
  return {
    directives: whole.filter(({ part }) => !included.has(part)).flatMap(({ directives }) => directives),
    problems,
  }
}

/** The files of a dump with the lines where they begin; a file that is none is one. */
function dumped(name: string, text: string): readonly { path: string; text: string; line: number }[] {
  const marks = [...text.matchAll(marker)]
  if (marks.length === 0) return [{ path: name, text, line: 1 }]
  return marks.map(({ index, 1: path = '' }, at) => ({
    path,
    text: text.slice(index, marks[at + 1]?.index),
    line: text.slice(0, index).split('\n').length,
  }))
}

/** Whether a pattern may be for a path: the name and its folder are compared, since files may be copies elsewhere. */
function isMatch(pattern = '', path: string): boolean {
  const [wanted, has] = [pattern.split('/').toReversed(), path.split('/').toReversed()]
  return wanted.slice(0, 2).every((part, at) => {
    const form = part
      .replaceAll(/[.+^${}()|[\]\\]/g, '\\$&')
      .replaceAll('*', '.*')
      .replaceAll('?', '.')
    return has[at] === undefined || new RegExp(`^${form}$`).test(has[at])
  })
}
