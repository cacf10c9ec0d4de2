import { parse } from 'yaml'
import { findPackages, packageNameOf, packageOf, type WorkspacePackage } from './packages.ts'
import { parseSource } from './parse-source.ts'
import { type Finding, isTestPath, lineAt, type SourceFile } from './source-file.ts'

const rule = 'manifests'

/**
 * The package whose libraries a file uses. Programs that documents show are run by tests, beside the libraries of
 * those.
 */
function homeOf(path: string, packages: readonly WorkspacePackage[]): WorkspacePackage | undefined {
  if (path.endsWith('.ts')) return packageOf(path, packages)
  const isShown = path.startsWith('docs/') && path.endsWith('.mjs')
  return isShown ? packages.find(({ folder }) => folder === 'test') : undefined
}

/** Every import of a library is named in the package.json of the package that holds the file. */
export function checkDeclared(tree: readonly SourceFile[]): Finding[] {
  const packages = findPackages(tree)
  const tools = packages.find(({ folder }) => folder === '')?.devDependencies ?? {}
  return tree.flatMap((file) => {
    const home = homeOf(file.path, packages)
    if (home === undefined) return []
    const running = { ...home.dependencies, [home.name]: '' }
    // The root's tools (vitest) are there for every test.
    const declared = isTestPath(file.path) ? { ...running, ...home.devDependencies, ...tools } : running
    return parseSource(file).imports.flatMap(({ from, position }) => {
      const name = packageNameOf(from)
      if (name === undefined || name in declared) return []
      const where = name in home.devDependencies ? 'only for its tests' : 'not at all'
      const what = `${name} is imported, and declared ${where} in ${home.folder}/package.json`
      return [{ path: file.path, line: lineAt(file.text, position), rule, what }]
    })
  })
}

/** Types are used by the packages that import what they describe. */
const described = (name: string) => name.replace(/^@types\//, '')

/** Every declared library is imported, and those that only tests import are declared as such. */
export function checkUsed(tree: readonly SourceFile[]): Finding[] {
  const packages = findPackages(tree)
  return packages
    .filter(({ folder }) => folder !== '')
    .flatMap((home) => {
      const files = tree.filter(({ path }) => homeOf(path, packages) === home)
      const namesIn = (some: readonly SourceFile[]) =>
        new Set(some.flatMap((file) => parseSource(file).imports.map(({ from }) => packageNameOf(from))))
      const isTests = home.folder === 'test'
      const running = namesIn(files.filter(({ path }) => isTests || !isTestPath(path)))
      const all = namesIn(files)
      const unused = [
        ...Object.keys(home.dependencies).filter((name) => !running.has(described(name))),
        ...Object.keys(home.devDependencies).filter((name) => !all.has(described(name))),
      ]
      const path = `${home.folder}/package.json`
      return unused.map((name) => {
        const what = all.has(described(name))
          ? `only tests import ${name}: it belongs to devDependencies`
          : `nothing imports ${name}`
        return { path, line: 0, rule, what }
      })
    })
}

const allDependencies = ({ dependencies, devDependencies }: WorkspacePackage) =>
  Object.entries({ ...dependencies, ...devDependencies })

/** Versions stand in the catalog and nowhere else: exact there, and each used by some package. */
export function checkCatalog(tree: readonly SourceFile[]): Finding[] {
  const workspaceFile = 'pnpm-workspace.yaml'
  const { catalog }: { catalog: Record<string, unknown> } = parse(
    tree.find(({ path }) => path === workspaceFile)?.text ?? 'catalog: {}',
  )
  const packages = findPackages(tree)
  const own = new Set(packages.map(({ name }) => name))
  const found = packages.flatMap((home) =>
    allDependencies(home).flatMap(([name, version]) => {
      const wanted = own.has(name) ? 'workspace:*' : 'catalog:'
      const path = home.folder === '' ? 'package.json' : `${home.folder}/package.json`
      return version === wanted
        ? []
        : [{ path, line: 0, rule, what: `${name} is "${version}", and should be "${wanted}"` }]
    }),
  )
  const used = new Set(packages.flatMap(allDependencies).map(([name]) => name))
  for (const [name, version] of Object.entries(catalog)) {
    if (!/^\d+\.\d+\.\d+$/.test(String(version))) {
      found.push({ path: workspaceFile, line: 0, rule, what: `${name} is ${String(version)}, not one exact version` })
    }
    if (!used.has(name)) found.push({ path: workspaceFile, line: 0, rule, what: `no package uses ${name}` })
  }
  return found
}
