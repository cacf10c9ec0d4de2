import * as decisions from '@weir/api/decisions.ts'
import * as blocks from '@weir/api/limits.ts'
import type { Operation } from '@weir/api/operation.ts'
import { shown } from '@weir/api/schema.ts'
import * as usage from '@weir/api/usage.ts'
import * as utilization from '@weir/api/utilization.ts'
import { expect, test } from 'vitest'
import { textOf } from './read-tree.ts'

const operations = Object.values({ ...usage, ...utilization, ...decisions, ...blocks }).filter(
  (one): one is Operation => typeof one === 'object' && 'method' in one,
)
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
  const range = minimum !== undefined && maximum !== undefined ? ` (${numbered(minimum)} to ${numbered(maximum)})` : ''
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

/** The page with the tables that its remarks ask for. */
const filled = (page: string) =>
  page.replaceAll(
    /(<!-- parameters: ([A-Z]+ \S+) -->\n)(?:\|[^\n]*\n)*/g,
    (_, remark: string, line: string) => remark + tableOf(line),
  )

test.each(['docs/blocks.md', 'docs/usage.md', 'docs/why.md'])(
  '%s has the parameters that the contract says; with -u this test writes them',
  async (path) => {
    const page = textOf(path)
    expect(page).toMatch(/<!-- parameters: /)
    await expect(filled(page)).toMatchFileSnapshot(`../../${path}`)
  },
)
