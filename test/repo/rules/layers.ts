import { computedImportsIn, exitsIn, type Layer, layers, testPackage } from './layer-table.ts'
import { findPackages, packageNameOf, packageOf, resolveRelative, type WorkspacePackage } from './packages.ts'
import { type ImportedName, parseSource, walk } from './parse-source.ts'
import { type Finding, isTestPath, lineAt, type SourceFile } from './source-file.ts'

const rule = 'layers'

/** Why this package's running code may not import that module; undefined when it may. */
function layerProblem(layer: Layer, module: string, ownNames: ReadonlySet<string>): string | undefined {
  if (module.startsWith('node:')) {
    return layer.node === 'all' || module === 'node:crypto' ? undefined : `imports ${module}, and is pure`
  }
  const name = packageNameOf(module) ?? ''
  const allowed = ownNames.has(name) ? layer.packages : layer.libraries
  if (allowed.some((one) => one === name || one === module)) return undefined
  return `imports ${module}; layer-table.ts allows ${allowed.length === 0 ? 'nothing of the kind' : allowed.join(', ')}`
}

function relativeProblem(file: SourceFile, module: string, home: WorkspacePackage, paths: ReadonlySet<string>) {
  const target = resolveRelative(file.path, module)
  if (!target.startsWith(`${home.folder}/`)) return `imports ${module}, past its own package`
  return paths.has(target) ? undefined : `imports ${module}, which is not there`
}

function importProblem(
  file: SourceFile,
  { from }: ImportedName,
  home: WorkspacePackage,
  around: { readonly paths: ReadonlySet<string>; readonly ownNames: ReadonlySet<string> },
): string | undefined {
  if (from.startsWith('.')) return relativeProblem(file, from, home, around.paths)
  const name = packageNameOf(from)
  if (name === testPackage) return `imports ${from}; only tests use tests`
  if (name === home.name) return `imports itself as ${from}; within a package paths are relative`
  if (isTestPath(file.path)) return undefined
  const layer = layers[home.name]
  if (layer === undefined) return `${home.name} has no row in test/repo/rules/layer-table.ts`
  return layerProblem(layer, from, around.ownNames)
}

/** Who imports whom, against layer-table.ts. Type imports count: what needs a library's types knows the library. */
export function checkLayers(tree: readonly SourceFile[]): Finding[] {
  const packages = findPackages(tree)
  const around = { paths: new Set(tree.map(({ path }) => path)), ownNames: new Set(packages.map(({ name }) => name)) }
  return tree.flatMap((file) => {
    const home = file.path.endsWith('.ts') ? packageOf(file.path, packages) : undefined
    if (home === undefined) return []
    const { imports, computedImports } = parseSource(file)
    const computed = computedImportsIn.some((one) => file.path.startsWith(one)) ? [] : computedImports
    const problems = imports.flatMap((one) => {
      const what = importProblem(file, one, home, around)
      return what === undefined ? [] : [{ position: one.position, what }]
    })
    const found = [
      ...problems,
      ...computed.map((position) => ({ position, what: 'imports a module worked out while running' })),
    ]
    return found.map(({ position, what }) => ({ path: file.path, line: lineAt(file.text, position), rule, what }))
  })
}

const isMain = (path: string) => path.endsWith('/main.ts')

/** Only a main.ts reads the environment or ends the process; the rest gets what it needs handed in, and reports. */
export function checkProcessUse(tree: readonly SourceFile[]): Finding[] {
  return tree.flatMap((file) => {
    const { path, text } = file
    if (!path.endsWith('.ts') || isTestPath(path) || isMain(path)) return []
    const found: Finding[] = []
    walk(parseSource(file).program, (node) => {
      if (node.type !== 'MemberExpression' || node.object.type !== 'Identifier' || node.object.name !== 'process')
        return
      const member = node.property.type === 'Identifier' ? node.property.name : ''
      const exits = member === 'exit' && !exitsIn.includes(path)
      if (exits || member === 'env') {
        found.push({ path, line: lineAt(text, node.start), rule: 'process', what: `process.${member} outside main.ts` })
      }
    })
    return found
  })
}

/**
 * The folders of core import each other in one direction only: a circle between two of them is one folder in disguise.
 * Of the two directions the one with fewer imports is reported, which is likely the mistake.
 */
export function checkCoreOrder(tree: readonly SourceFile[]): Finding[] {
  const top = 'packages/core/src/'
  const folderOf = (path: string) => path.slice(top.length).split('/').slice(0, -1).join('/')
  const edges = tree
    .filter(({ path }) => path.startsWith(top) && path.endsWith('.ts') && !isTestPath(path))
    .flatMap((file) =>
      parseSource(file).imports.map(({ from, position }) => {
        const to = from.startsWith('.') ? folderOf(resolveRelative(file.path, from)) : ''
        return { file, position, from: folderOf(file.path), to }
      }),
    )
    .filter(({ from, to }) => from !== to && to !== '')
  const weight = (from: string, to: string) => edges.filter((one) => one.from === from && one.to === to).length
  return edges
    .filter(({ from, to }) => weight(to, from) > 0 && weight(from, to) <= weight(to, from))
    .map(({ file, position, from, to }) => ({
      path: file.path,
      line: lineAt(file.text, position),
      rule: 'core order',
      what: `${from} imports ${to}, which imports ${from}`,
    }))
}
