import { findPackages, resolveImport } from './packages.ts'
import { type ExportedName, parseSource } from './parse-source.ts'
import { type Finding, lineAt, type SourceFile } from './source-file.ts'

const rule = 'dead exports'

/** Files that are found by their name and not by an import: benches, set-ups of vitest, configurations. */
const foundByName = [
  /^vitest\.config\.ts$/,
  /^docs\/\.vitepress\/config\.ts$/,
  /^test\/bench\/[\w-]+\.bench\.ts$/,
  /\/provide-[\w-]+\.ts$/,
]

/** Names that the importing files take, by the file they take them from. */
function takenNames(tree: readonly SourceFile[]): ReadonlyMap<string, ReadonlySet<string>> {
  const packages = findPackages(tree)
  const taken = new Map<string, Set<string>>()
  for (const file of tree.filter(({ path }) => path.endsWith('.ts'))) {
    for (const { from, name } of parseSource(file).imports) {
      const target = resolveImport(from, file.path, packages)
      if (target === undefined) continue
      const names = taken.get(target) ?? new Set()
      taken.set(target, names.add(name))
    }
  }
  return taken
}

/** A type that another export of its file is made of is named where that export is used, imported or not. */
const isPartOfAnother = (file: SourceFile, { name, isType }: ExportedName) =>
  isType && (file.text.match(new RegExp(`\\b${name}\\b`, 'g')) ?? []).length > 1

/** Exported names that nobody imports. */
export function checkDeadExports(tree: readonly SourceFile[]): Finding[] {
  const taken = takenNames(tree)
  return tree
    .filter(({ path }) => path.endsWith('.ts') && !foundByName.some((one) => one.test(path)))
    .flatMap((file) => {
      const names = taken.get(file.path) ?? new Set()
      if (names.has('*')) return []
      return parseSource(file)
        .exports.filter((one) => one.isOwn && !names.has(one.name) && !isPartOfAnother(file, one))
        .map(({ name, position }) => {
          const what = `nobody imports ${name}: make it private or remove it`
          return { path: file.path, line: lineAt(file.text, position), rule, what }
        })
    })
}

/** `export *` hides where a name comes from. */
export function checkBarrels(tree: readonly SourceFile[]): Finding[] {
  return tree
    .filter(({ path }) => path.endsWith('.ts'))
    .flatMap((file) =>
      parseSource(file)
        .exports.filter(({ name }) => name === '*')
        .map(({ position }) => ({
          path: file.path,
          line: lineAt(file.text, position),
          rule: 'barrels',
          what: 'export *',
        })),
    )
}
