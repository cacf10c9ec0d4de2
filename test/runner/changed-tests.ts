import { findPackages, packageNameOf, resolveImport, type WorkspacePackage } from '../repo/rules/packages.ts'
import { parseSource } from '../repo/rules/parse-source.ts'
import type { SourceFile } from '../repo/rules/source-file.ts'

/** What every test depends on: a change of one of these picks all of them. */
const underAll = [
  /^(?:weir|vitest\.config\.ts|pnpm-lock\.yaml|pnpm-workspace\.yaml|tsconfig.*\.json)$/,
  /(?:^|\/)package\.json$/,
  /^test\/runner\//,
  /^test\/support\/(?:report-failure|servers\/(?:provide-\w+|start-server|server-logs))\.ts$/,
]
/** The scripts include each other by names that only their assembler knows. */
const luaFolder = 'lua/'

const isTest = (path: string) => path.endsWith('.test.ts')

/** Files by every end of their path that has a folder in it: `scripts/decide.lua`, `lua/scripts/decide.lua`. */
function byPathEnd(paths: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const ends = new Map<string, string[]>()
  for (const path of paths) {
    const parts = path.split('/')
    for (let from = parts.length - 2; from >= 0; from -= 1) {
      const end = parts.slice(from).join('/')
      ends.set(end, [...(ends.get(end) ?? []), path])
    }
    // A folder stands for all files below it.
    for (let to = parts.length - 1; to >= 2; to -= 1) {
      const folder = parts.slice(0, to).join('/')
      ends.set(folder, [...(ends.get(folder) ?? []), path])
    }
  }
  return ends
}

/**
 * Paths in quotes: programs that a file starts, and files that it reads. `${name}` stands for any one part of a path.
 */
function namedIn({ path, text }: SourceFile, paths: readonly string[], ends: ReadonlyMap<string, readonly string[]>) {
  const found = new Set<string>()
  const own = path.slice(0, path.lastIndexOf('/') + 1)
  for (const [, quoted = ''] of text.matchAll(/['"`]([\w./${}-]+)['"`]/g)) {
    const name = quoted.replace(/^(?:\$\{\w+\}\/|\.{1,2}\/)+/, '')
    if (name.includes('${') && name.includes('/')) {
      const pattern = new RegExp(`(?:^|/)${name.replaceAll('.', '\\.').replaceAll(/\$\{\w*\}/g, '[^/]+')}$`)
      for (const one of paths) if (pattern.test(one)) found.add(one)
    } else {
      for (const one of ends.get(name) ?? []) found.add(one)
      if (/\.\w+$/.test(name)) found.add(`${own}${name}`)
    }
  }
  return found
}

function importedBy(file: SourceFile, packages: readonly WorkspacePackage[]): string[] {
  return parseSource(file).imports.flatMap(({ from }) => {
    if (!from.startsWith('.') && packageNameOf(from)?.startsWith('@weir/') !== true) return []
    return resolveImport(from, file.path, packages) ?? []
  })
}

/** By file, the files that import it, start it or read it. */
export function usersByFile(tree: readonly SourceFile[]): ReadonlyMap<string, ReadonlySet<string>> {
  const packages = findPackages(tree)
  const paths = tree.map(({ path }) => path)
  const ends = byPathEnd(paths)
  const users = new Map<string, Set<string>>()
  for (const file of tree) {
    if (!file.path.endsWith('.ts')) continue
    for (const used of [...importedBy(file, packages), ...namedIn(file, paths, ends)]) {
      const known = users.get(used) ?? new Set()
      users.set(used, known.add(file.path))
    }
  }
  return users
}

/**
 * The test files that a change of these files touches: those that import, start or read one of them, at whatever
 * remove.
 */
export function testsTouchedBy(
  changed: readonly string[],
  tree: readonly SourceFile[],
  users = usersByFile(tree),
): string[] {
  const tests = tree.map(({ path }) => path).filter(isTest)
  if (changed.some((path) => underAll.some((one) => one.test(path)))) return tests
  const lua = changed.some((path) => path.startsWith(luaFolder))
    ? tree.map(({ path }) => path).filter((path) => path.startsWith(luaFolder))
    : []
  const touched = new Set([...changed, ...lua])
  // A set may grow while it is walked: users of users are met in turn.
  for (const path of touched) for (const user of users.get(path) ?? []) touched.add(user)
  return tests.filter((path) => touched.has(path))
}
