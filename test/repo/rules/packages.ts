import type { SourceFile } from './source-file.ts'

/** A member of the workspace, as its package.json says. */
export interface WorkspacePackage {
  readonly name: string
  /** Its folder, without a slash at the end. */
  readonly folder: string
  /** The folder in it from which others import, with a slash at the end; empty for the folder itself. */
  readonly sources: string
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
}

/** Installed by npm, each under a lock file of its own: what installs the workspace, and a browser for tests. */
const byNpm = [
  'infra/pnpm/package.json',
  'test/support/programs/chromium/package.json',
  'test/support/suppliers-sdks/npm/package.json',
]

/** Every package.json of the workspace; the root's folder is empty. */
export function findPackages(tree: readonly SourceFile[]): WorkspacePackage[] {
  return tree
    .filter(({ path }) => !byNpm.includes(path) && (path === 'package.json' || path.endsWith('/package.json')))
    .map(({ path, text }) => {
      const manifest: Partial<WorkspacePackage & { exports: Record<string, unknown> }> = JSON.parse(text)
      const { name = '', dependencies = {}, devDependencies = {}, exports = {} } = manifest
      const sources = /^\.\/(.*)\*\.ts$/.exec(String(exports['./*.ts']))?.[1] ?? 'src/'
      const folder = path.slice(0, -'/package.json'.length)
      return { name, folder, sources, dependencies, devDependencies }
    })
}

/** The package that a file belongs to: the one with the longest folder above it. */
export function packageOf(path: string, packages: readonly WorkspacePackage[]): WorkspacePackage | undefined {
  return packages
    .filter(({ folder }) => folder !== '' && path.startsWith(`${folder}/`))
    .toSorted((a, b) => b.folder.length - a.folder.length)[0]
}

/**
 * The package part of a module's name: `@scope/name`, or the first word; undefined for relative paths and Node's own.
 */
export function packageNameOf(module: string): string | undefined {
  if (module.startsWith('.') || module.startsWith('/') || module.startsWith('node:')) return undefined
  return module
    .split('/')
    .slice(0, module.startsWith('@') ? 2 : 1)
    .join('/')
}

/** The file that an import means, from the root of the tree; undefined for what is not in it. */
export function resolveImport(
  module: string,
  importer: string,
  packages: readonly WorkspacePackage[],
): string | undefined {
  if (module.startsWith('.')) return resolveRelative(importer, module)
  const name = packageNameOf(module)
  const target = packages.find((one) => one.name === name)
  if (target === undefined || name === undefined) return undefined
  return `${target.folder}/${target.sources}${module.slice(name.length + 1)}`
}

/** A path relative to the folder of `from`, without `.` and `..`. */
export function resolveRelative(from: string, to: string): string {
  const parts = from.split('/').slice(0, -1)
  for (const part of to.split('/')) {
    if (part === '..') parts.pop()
    else if (part !== '.' && part !== '') parts.push(part)
  }
  return parts.join('/')
}
