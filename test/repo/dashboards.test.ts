import { dashboardFiles } from '@weir/grafana/dashboards.ts'
import { describe, expect, test } from 'vitest'
import { textOf, tree } from './read-tree.ts'
import { readMarkdown } from './rules/markdown.ts'

interface Target {
  readonly refId: string
  readonly datasource?: { readonly type: string; readonly uid: string }
  readonly expr?: string
  readonly legendFormat?: string
  readonly rawSql?: string
}
interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly description?: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly Target[]
}

const folder = 'infra/grafana/dashboards/'
const built = Object.entries(dashboardFiles())

test('the committed dashboards are what `node infra/grafana/src/main.ts` writes', () => {
  const committed = tree.filter(({ path }) => path.startsWith(folder)).map(({ path }) => path.slice(folder.length))
  expect(committed.toSorted()).toEqual(built.map(([name]) => name).toSorted())
  for (const [name, text] of built) expect([name, textOf(folder + name) === text]).toEqual([name, true])
})

test('each dashboard has an address of its own, and no panel a title that another has', () => {
  const all = built.map(([, text]) => JSON.parse(text))
  expect(new Set(all.map(({ uid }) => uid)).size).toBe(built.length)
  for (const { panels } of all) {
    const titles = panels.filter(({ type }: Panel) => type !== 'row').map(({ title }: Panel) => title)
    expect(titles.filter((title: string, at: number) => titles.indexOf(title) !== at)).toEqual([])
  }
})

describe.each(built)('%s', (_, text) => {
  const { panels, templating }: { panels: Panel[]; templating: { list: { name: string }[] } } = JSON.parse(text)
  const withData = panels.filter(({ type }) => type !== 'row')

  test('numbers its panels once each, and no two overlap or leave the grid', () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, at) => `${x + (at % w)}, ${y + Math.floor(at / w)}`),
    )
    expect(new Set(cells).size).toBe(cells.length)
    expect(panels.filter(({ gridPos: { x, w } }) => x < 0 || x + w > 24)).toEqual([])
  })

  test('says of each panel what to read off it, and gives each target a data source that can be chosen, and a legend', () => {
    expect(
      withData.filter(({ description = '', targets = [] }) => description.length < 15 || targets.length === 0),
    ).toEqual([])
    const sources = templating.list.map(({ name }) => `$\{${name}}`)
    const targets = withData.flatMap(({ targets = [] }) => targets)
    const isWhole = ({ datasource, expr, legendFormat, rawSql }: Target) =>
      sources.includes(datasource?.uid ?? '') &&
      (rawSql !== undefined || (expr !== undefined && legendFormat !== undefined))
    expect(targets.filter((target) => !isWhole(target))).toEqual([])
  })
})

test('what docs/monitoring.md says to watch has the panels and alerts that it names', () => {
  const { rows } = readMarkdown({ path: 'docs/monitoring.md', text: textOf('docs/monitoring.md') })
  const watched = rows.filter(({ cells }) => built.some(([name]) => cells[2]?.startsWith(name.replace('.json', ': '))))
  expect(watched.length).toBeGreaterThan(15)
  const alerts = textOf('infra/prometheus/alerts.rules.yml')
  const titles = new Map(built.map(([name, text]) => [name, JSON.parse(text).panels.map(({ title }: Panel) => title)]))
  for (const { cells } of watched) {
    for (const [, name] of (cells[3] ?? '').matchAll(/`(\w+)`/g)) expect(alerts).toContain(`- alert: ${name}\n`)
    for (const one of (cells[2] ?? '').split('; ')) {
      const [dashboard, named = ''] = one.split(': ')
      for (const title of named.split(', ')) expect(titles.get(`${dashboard}.json`)).toContain(title)
    }
  }
})

test('docs/monitoring.md says of each panel of the overview what to read off it', () => {
  const { rows } = readMarkdown({ path: 'docs/monitoring.md', text: textOf('docs/monitoring.md') })
  const { panels }: { panels: Panel[] } = JSON.parse(textOf(`${folder}overview.json`))
  const titles = panels.filter(({ type }) => type !== 'row').map(({ title }) => title)
  const said = rows.flatMap(({ cells }) => (cells.length === 3 && titles.includes(cells[0] ?? '') ? [cells[0]] : []))
  expect(said).toEqual(titles)
})
