import * as access from '@weir/api/access.ts'
import * as alerts from '@weir/api/alerts.ts'
import * as check from '@weir/api/check.ts'
import * as decisions from '@weir/api/decisions.ts'
import * as ingress from '@weir/api/ingress.ts'
import * as limits from '@weir/api/limits.ts'
import * as money from '@weir/api/money.ts'
import type { Operation } from '@weir/api/operation.ts'
import * as policy from '@weir/api/policy.ts'
import * as status from '@weir/api/status.ts'
import * as usage from '@weir/api/usage.ts'
import * as utilization from '@weir/api/utilization.ts'
import type { MarkdownOptions } from 'vitepress'

type Renderer = Parameters<NonNullable<MarkdownOptions['config']>>[0]

/** As much of JSON Schema as a table shows. */
interface Schema {
  readonly type?: string | readonly string[]
  readonly description?: string
  readonly enum?: readonly unknown[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly anyOf?: readonly Schema[]
  readonly described?: Schema
}

const isOperation = (value: unknown): value is Operation =>
  typeof value === 'object' && value !== null && 'method' in value && 'answers' in value
const operationsOf = (...modules: readonly object[]) =>
  modules.flatMap((module) => Object.values(module).filter(isOperation))

/** A text in a cell of a table: one line, no column of its own, nothing that Vue reads. */
const cell = (text: string) =>
  text.replaceAll('|', '\\|').replaceAll('\n', ' ').replaceAll('{', '&#123;').replaceAll('<', '&lt;')

function typeOf({ type, enum: values, items, anyOf, properties }: Schema): string {
  if (values !== undefined) return values.map((one) => `\`${cell(String(one))}\``).join(', ')
  if (items !== undefined) return `list of ${typeOf(items)}`
  if (anyOf !== undefined) return [...new Set(anyOf.map(typeOf))].join(' or ')
  return properties === undefined ? [type ?? 'any'].flat().join(' or ') : 'object'
}

/** A row for each property, those of objects and lists below them by their path. */
function rowsOf({ properties = {}, required = [], described }: Schema, path = ''): string[] {
  const all = { ...properties, ...described?.properties }
  return Object.entries(all).flatMap(([name, schema]) => {
    const place = `${path}${name}`
    const must = path === '' && required.includes(name) ? ', required' : ''
    const row = `| \`${place}\` | ${typeOf(schema)}${must} | ${cell(schema.description ?? '')} |`
    const { items } = schema
    const inner = items?.properties === undefined ? schema : items
    return [row, ...(inner.properties === undefined ? [] : rowsOf(inner, `${place}${inner === items ? '[]' : ''}.`))]
  })
}

function table(title: string, schema: unknown): string[] {
  const rows = rowsOf((schema ?? {}) as Schema)
  return rows.length === 0 ? [] : [`**${title}**`, '', '| Name | Type | |', '| --- | --- | --- |', ...rows, '']
}

function section({ method, path, summary, scope, orScope, reach, params, query, body, answers }: Operation): string {
  const who = [
    ...(scope === undefined ? [] : [`Scope \`${scope}\`${orScope === undefined ? '' : ` or \`${orScope}\``}.`]),
    ...(reach === 'own' ? ['Customers for their own subjects.'] : []),
  ].join(' ')
  const shown = Object.entries(answers).flatMap(([code, schema]) => {
    const rows = table(`Answer ${code}`, schema)
    return rows.length > 0 ? rows : [`**Answer ${code}**: ${cell((schema as Schema).description ?? '')}`, '']
  })
  return [
    `### ${method} ${cell(path.replaceAll(/:(\w+)/g, '{$1}'))}`,
    '',
    `${cell(summary)}. ${who}`.trim(),
    '',
    ...table('Path', params),
    ...table('Query', query),
    ...table('Body', body),
    ...shown,
  ].join('\n')
}

function sectionsOf(operations: readonly Operation[]): string {
  const byTag = [...Map.groupBy(operations, ({ tag }) => tag)]
  return byTag
    .map(([tag, of]) => `## ${tag[0]?.toUpperCase()}${tag.slice(1)}\n\n${of.map(section).join('\n')}`)
    .join('\n')
}

/** By the place in a page where they stand. */
const apis: Readonly<Record<string, readonly object[]>> = {
  'the console': [usage, decisions, utilization, money, alerts, limits, policy, access, status],
  'the ingress': [check, ingress],
}

/** Fills `<!-- operations of … -->` with the operations of the contract that both services serve. */
export function listOperations(md: Renderer): void {
  md.core.ruler.before('normalize', 'weir-operations', (state) => {
    state.src = state.src.replaceAll(/^<!-- operations of ([a-z ]+) -->$/gm, (_, name: string) =>
      sectionsOf(operationsOf(...(apis[name] ?? []))),
    )
  })
}
