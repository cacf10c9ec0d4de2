import { findPackages, packageOf, resolveImport } from './packages.ts'
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
 * Reports the circles that are not below a path of `known`, and the paths of `known` that have no circle any more, so
 * that the list only shrinks.
 */
function report(circles: readonly string[][], known: readonly string[], things: string): Finding[] {
  const isBelow = (paths: readonly string[], beginning: string) => paths.every((path) => path.startsWith(beginning))
  const unknown = circles
    .filter((paths) => !known.some((beginning) => isBelow(paths, beginning)))
    .map((paths) => ({ path: paths[0] ?? '', line: 0, rule, what: `these ${things} each other: ${paths.join(', ')}` }))
  const gone = known
    .filter((beginning) => !circles.some((paths) => isBelow(paths, beginning)))
    .map((path) => ({ path, line: 0, rule, what: 'has no circle any more: take it off the list in layer-table.ts' }))
  return [...unknown, ...gone]
}

/** Reports every import circle of running code. `known` lists beginnings of paths below which one may still be. */
export const checkCircles = (tree: readonly SourceFile[], known: readonly string[]): Finding[] =>
  report(findCircles(importsOf(tree)), known, 'import')

/**
 * Returns the two folders, side by side in one folder, that hold both files; undefined if one of the files
 * is directly in that folder: the files of a folder may use its parts, and the parts may use them.
 */
function foldersBetween(from: string, to: string): readonly [string, string] | undefined {
  const [own, other] = [from.split('/'), to.split('/')]
  const at = own.findIndex((part, index) => part !== other[index])
  if (at === -1 || at >= own.length - 1 || at >= other.length - 1) return undefined
  return [own.slice(0, at + 1).join('/'), other.slice(0, at + 1).join('/')]
}

/**
 * Reports folders of a package that import each other in a circle: a folder imports what any file in it or below it
 * imports. `known` is as for files.
 */
export function checkFolderCircles(tree: readonly SourceFile[], known: readonly string[]): Finding[] {
  const packages = findPackages(tree)
  const edges = new Map<string, string[]>()
  for (const [path, targets] of importsOf(tree)) {
    for (const target of targets) {
      if (packageOf(path, packages) !== packageOf(target, packages)) continue
      const [from, to] = foldersBetween(path, target) ?? []
      if (from === undefined || to === undefined) continue
      edges.set(from, [...(edges.get(from) ?? []), to])
      // A folder that imports nothing is one of the graph all the same.
      edges.set(to, edges.get(to) ?? [])
    }
  }
  return report(findCircles(edges), known, 'folders import')
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
