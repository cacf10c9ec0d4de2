import { parsePolicy } from '@weir/policy/reader/parse-policy.ts'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { chartFiles, chartFolder, valueRows } from '../packaging/chart-files.ts'
import { goTools } from '../packaging/chart-tools.ts'
import { textOf, tree } from './read-tree.ts'

const made = await chartFiles()
const inChart = (path: string) => textOf(`${chartFolder}/${path}`)

test('what the chart has of other files is what `node test/packaging/write-chart.ts` writes', () => {
  for (const [path, text] of Object.entries(made)) expect([path, inChart(path) === text]).toEqual([path, true])
  const copies = tree.flatMap(({ path }) => (path.startsWith(`${chartFolder}/files/`) ? [path] : []))
  const wanted = Object.keys(made).filter((path) => path.startsWith('files/'))
  expect(copies.toSorted()).toEqual(wanted.map((path) => `${chartFolder}/${path}`).toSorted())
  const dashboards = tree.filter(({ path }) => path.startsWith('infra/grafana/dashboards/'))
  expect(copies.filter((path) => path.includes('/dashboards/'))).toHaveLength(dashboards.length)
})

test('Every value of the chart says what it is, and a value that does not is refused', () => {
  expect(valueRows(inChart('values.yaml')).length).toBeGreaterThan(40)
  expect(() => valueRows('a:\n  # known\n  b: 1\n\n  c: 2\n')).toThrow('a.c')
})

test('The chart has the version of Weir’s newest release, and its jobs’ partitions are those of the topics', () => {
  const { version, appVersion } = parse(inChart('Chart.yaml'))
  const { topics } = JSON.parse(textOf('infra/kafka/topics.json'))
  expect(appVersion).toBe(version)
  expect(parse(inChart('values.yaml')).kafka.partitions).toBe(topics['weir.decisions.v1'].partitions)
})

test('The policy of the chart’s examples is one that Weir reads', () => {
  const { policy } = parse(inChart('ci/everything.yaml'))
  expect(parsePolicy(policy.text, 'everything.yaml')).toMatchObject({ kind: 'policy' })
})

test('The tools of Go are the versions that their modules name', () => {
  for (const { name, version, path } of Object.values(goTools)) {
    const module = path.replace('/cmd/helm', '')
    expect(textOf(`test/support/go-tools/${name}/go.mod`)).toMatch(
      new RegExp(`^(?:require )?\\t?${module.replaceAll('.', '\\.')} ${version}(?: // indirect)?$`, 'm'),
    )
  }
})
