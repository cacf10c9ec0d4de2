import { type Comment, type Node, type Program, parseSync } from 'oxc-parser'
import type { SourceFile } from './source-file.ts'

/** One name that a file takes from another module; `*` stands for all of them. */
export interface ImportedName {
  /** The module as it is written. */
  readonly from: string
  readonly name: string
  readonly position: number
}

export interface ExportedName {
  readonly name: string
  readonly isType: boolean
  /** False for what is handed on from another module. */
  readonly isOwn: boolean
  readonly position: number
}

/** What the rules want to know of a TypeScript file. */
export interface ParsedSource {
  readonly program: Program
  readonly comments: readonly Comment[]
  readonly imports: readonly ImportedName[]
  /** Positions of imports whose module is worked out while running. */
  readonly computedImports: readonly number[]
  readonly exports: readonly ExportedName[]
}

/** Calls `enter` for every node below one, parents first. */
export function walk(node: Node | Program, enter: (node: Node) => void): void {
  const visit = (one: unknown): void => {
    if (Array.isArray(one)) {
      for (const item of one) visit(item)
    } else if (isNode(one)) {
      enter(one)
      for (const value of Object.values(one)) visit(value)
    }
  }
  visit(node)
}

/** The name that a chain of members and calls begins with: `test` of `test.each(rows)`. Empty when it is no name. */
export function beginning(node: Node): string {
  if (node.type === 'MemberExpression') return beginning(node.object)
  if (node.type === 'CallExpression' || node.type === 'TaggedTemplateExpression') {
    return beginning(node.type === 'CallExpression' ? node.callee : node.tag)
  }
  return node.type === 'Identifier' ? node.name : ''
}

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'type' in value

/** The text in `createRequire(…).resolve('x')` or `createRequire(…)('x')`, which is an import in the older way. */
function requiredModule(node: Node): string | undefined {
  if (node.type !== 'CallExpression') return undefined
  const { callee } = node
  const maker = callee.type === 'MemberExpression' ? callee.object : callee
  if (maker.type !== 'CallExpression' || beginning(maker) !== 'createRequire') return undefined
  const [module] = node.arguments
  return module?.type === 'Literal' && typeof module.value === 'string' ? module.value : undefined
}

/** `import('x')`, as a value and as a type, and its older forms: modules taken as a whole. */
function inlineImports(program: Program): { imports: ImportedName[]; computedImports: number[] } {
  const imports: ImportedName[] = []
  const computedImports: number[] = []
  walk(program, (node) => {
    const required = requiredModule(node)
    // What such a require reads from a folder of its own is no module of ours.
    if (required !== undefined && !required.startsWith('.'))
      imports.push({ from: required, name: '*', position: node.start })
    if (node.type !== 'ImportExpression' && node.type !== 'TSImportType') return
    const { source } = node
    if (source.type === 'Literal' && typeof source.value === 'string') {
      imports.push({ from: source.value, name: '*', position: node.start })
    } else computedImports.push(node.start)
  })
  return { imports, computedImports }
}

function parse({ path, text }: SourceFile): ParsedSource {
  const { program, comments, module, errors } = parseSync(path, text)
  if (errors.length > 0) throw new Error(`${path} cannot be parsed: ${errors[0]?.message}`)
  const { imports, computedImports } = inlineImports(program)
  const exports: ExportedName[] = []
  for (const { moduleRequest, entries, start } of module.staticImports) {
    const names = entries.map(({ importName }) =>
      importName.kind === 'Default' ? 'default' : (importName.name ?? '*'),
    )
    // An import without names is there for what it does.
    for (const name of names.length === 0 ? ['*'] : names)
      imports.push({ from: moduleRequest.value, name, position: start })
  }
  for (const { entries } of module.staticExports) {
    for (const { moduleRequest, importName, exportName, isType, start } of entries) {
      const isOwn = moduleRequest === null
      const name = exportName.kind === 'Default' ? 'default' : (exportName.name ?? '*')
      exports.push({ name, isType, isOwn, position: start })
      if (!isOwn) imports.push({ from: moduleRequest.value, name: importName.name ?? '*', position: start })
    }
  }
  return { program, comments, imports, computedImports, exports }
}

const parsed = new WeakMap<SourceFile, ParsedSource>()

/** A TypeScript file, parsed once however many rules ask. */
export function parseSource(file: SourceFile): ParsedSource {
  const before = parsed.get(file)
  if (before !== undefined) return before
  const source = parse(file)
  parsed.set(file, source)
  return source
}
