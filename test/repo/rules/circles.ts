import { findPackages, resolveImport } from './packages.ts'
import { parseSource } from './parse-source.ts'
import { type Finding, isTestPath, type SourceFile } from './source-file.ts'

const rule = 'circles'

/**
 * The files that each running file imports, types included: what needs a type of another file cannot be read without
 * it.
 */
function importsOf(tree: readonly SourceFile[]): ReadonlyMap<string, readonly string[]> {
  const packages = findPackages(tree)
  const sources = tree.filter(({ path }) => path.endsWith('.ts') && !isTestPath(path))
  const paths = new Set(sources.map(({ path }) => path))
  return new Map(
    sources.map((file) => {
      const targets = parseSource(file).imports.map(({ from }) => resolveImport(from, file.path, packages))
      return [file.path, [...new Set(targets.filter((one): one is string => one !== undefined && paths.has(one)))]]
    }),
  )
}

/**
 * Groups of files of which each imports every other, directly or by others of the group (Tarjan, 1972). Sorted by path.
 */
function findCircles(edges: ReadonlyMap<string, readonly string[]>): string[][] {
  const order = new Map<string, number>()
  const open: string[] = []
  const circles: string[][] = []
  const visit = (path: string): number => {
    const own = order.size
    order.set(path, own)
    let low = own
    open.push(path)
    for (const next of edges.get(path) ?? []) {
      if (!order.has(next)) low = Math.min(low, visit(next))
      else if (open.includes(next)) low = Math.min(low, order.get(next) ?? low)
    }
    if (low === own) {
      const group = open.splice(open.indexOf(path))
      if (group.length > 1 || edges.get(path)?.includes(path)) circles.push(group.sort())
    }
    return low
  }
  for (const path of edges.keys()) if (!order.has(path)) visit(path)
  return circles.sort()
}

/**
 * Reports every import circle of running code, by the first file of its path. `known` lists beginnings of paths below
 * which a circle may still be; one that has none any more is reported too, so that the list only shrinks.
 */
export function checkCircles(tree: readonly SourceFile[], known: readonly string[]): Finding[] {
  const circles = findCircles(importsOf(tree))
  const isBelow = (files: readonly string[], beginning: string) => files.every((path) => path.startsWith(beginning))
  const unknown = circles
    .filter((files) => !known.some((beginning) => isBelow(files, beginning)))
    .map((files) => ({ path: files[0] ?? '', line: 0, rule, what: `these import each other: ${files.join(', ')}` }))
  const gone = known
    .filter((beginning) => !circles.some((files) => isBelow(files, beginning)))
    .map((path) => ({ path, line: 0, rule, what: 'has no circle any more: take it off the list in layer-table.ts' }))
  return [...unknown, ...gone]
}

/** Reports running code that imports from a folder named `testing`: only tests, and the folder's own files, may. */
export function checkTestingFolders(tree: readonly SourceFile[]): Finding[] {
  return [...importsOf(tree)].flatMap(([path, targets]) =>
    path.includes('/testing/')
      ? []
      : targets
          .filter((target) => target.includes('/testing/'))
          .map((target) => ({ path, line: 0, rule: 'testing', what: `imports ${target}, which is for tests` })),
  )
}
