import { readdirSync } from 'node:fs'
import { type IngressPath, ingressPaths } from '@weir/api/ingress.ts'
import type { Operation } from '@weir/api/operation.ts'
import { shown } from '@weir/api/schema.ts'
import { openConsole } from '@weir/console/testing/open-console.ts'
import { expect, test } from 'vitest'
import { textOf } from './read-tree.ts'

const folder = new URL('../../packages/api/src/', import.meta.url)
const files = readdirSync(folder).filter((name) => name.endsWith('.ts'))
const modules: readonly object[] = await Promise.all(files.map((name) => import(new URL(name, folder).href)))
const operations = modules
  .flatMap((one) => Object.values(one))
  .filter((one): one is Operation => typeof one === 'object' && one !== null && 'method' in one && 'answers' in one)
const operationOf = (line: string) =>
  operations.find(({ method, path }) => `${method} ${path}` === line) ?? expect.fail(`no operation ${line}`)

interface Parameter {
  readonly description?: string
  readonly enum?: readonly string[]
  readonly minimum?: number
  readonly maximum?: number
  readonly default?: unknown
  readonly type?: string
}

const code = (value: unknown) => `\`${String(value)}\``
/** Whole numbers as people write them. */
const numbered = (value: number) => value.toLocaleString('en')

function wordsOf({ description = '', enum: values, minimum, maximum }: Parameter): string {
  const bounds = minimum !== undefined && maximum !== undefined ? `${numbered(minimum)} to ${numbered(maximum)}` : ''
  const range = bounds === '' ? '' : description.endsWith('.') ? ` ${bounds}.` : ` (${bounds})`
  // What is sorted by has a twin with `-` of each name.
  const names = values?.filter((value) => !value.startsWith('-')) ?? []
  const isNamed = names.every((name) => description.includes(code(name)))
  return `${description}${range}${isNamed ? '' : `. One of ${names.map(code).join(', ')}`}`
}

/** The table of an operation's parameters; filters by column are said in a sentence before it. */
function tableOf(line: string): string {
  const { properties } = shown(operationOf(line).query) as { readonly properties: Readonly<Record<string, Parameter>> }
  const isFilter = ({ description = '' }: Parameter) => /^only rows with(out)? this value/.test(description)
  const rows = Object.entries(properties).flatMap(([name, parameter]) => {
    const { default: otherwise } = parameter
    const fallback =
      otherwise === undefined ? '' : typeof otherwise === 'number' ? numbered(otherwise) : code(otherwise)
    return isFilter(parameter) ? [] : [`| ${code(name)} | ${wordsOf(parameter)} | ${fallback} |`]
  })
  return ['| Parameter | What it is | Default |', '| --- | --- | --- |', ...rows, ''].join('\n')
}

/** The table of the fields of a body of the check API. */
function fieldsOf(path: string): string {
  const { body } =
    Object.entries(ingressPaths as Readonly<Record<string, IngressPath>>).find(([one]) => one === path)?.[1] ?? {}
  const { properties } = shown(body) as { readonly properties: Readonly<Record<string, Parameter>> }
  const rows = Object.entries(properties).map(([name, field]) => `| ${code(name)} | ${wordsOf(field)} |`)
  return ['| Field | What it is |', '| --- | --- |', ...rows, ''].join('\n')
}

/** The page with the tables that its remarks ask for. */
const filled = (page: string) =>
  page.replaceAll(
    /(<!-- (parameters|body): (\S.*) -->\n)(?:\|[^\n]*\n)*/g,
    (_, remark: string, kind: string, what: string) => remark + (kind === 'body' ? fieldsOf(what) : tableOf(what)),
  )

test.each(['docs/blocks.md', 'docs/check-api.md', 'docs/usage.md', 'docs/why.md'])(
  '%s has the parameters that the contract says; with -u this test writes them',
  async (path) => {
    const page = textOf(path)
    expect(page).toMatch(/<!-- (parameters|body): /)
    await expect(filled(page)).toMatchFileSnapshot(`../../${path}`)
  },
)

test('the console serves every operation of the contract', async () => {
  const { ask } = openConsole()
  const { paths }: { paths: Record<string, object> } = (await ask('/openapi.json')).json()
  const isServed = ({ method, path }: Operation) =>
    method.toLowerCase() in (paths[path.replaceAll(/:(\w+)/g, '{$1}')] ?? {})
  expect(operations.length).toBeGreaterThan(40)
  expect(operations.filter((one) => !isServed(one)).map(({ method, path }) => `${method} ${path}`)).toEqual([])
})
