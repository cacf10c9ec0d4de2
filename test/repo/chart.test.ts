import { parsePolicy } from '@weir/policy/reader/parse-policy.ts'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { chartFiles, chartFolder, valueRows } from '../packaging/chart-files.ts'
import { goTools } from '../packaging/chart-tools.ts'
import { textOf, tree } from './read-tree.ts'

const inChart = (path: string) => textOf(`${chartFolder}/${path}`)

test('Of the files that `npm run chart` writes, only the page of values is committed, and it is up to date', async () => {
  const made = Object.entries(await chartFiles()).map(([path, text]) => ({ path: `${chartFolder}/${path}`, text }))
  expect(made.length).toBeGreaterThan(8)
  const committed = made.filter(({ path }) => tree.some((file) => file.path === path))
  expect(committed).toEqual([{ path: `${chartFolder}/README.md`, text: inChart('README.md') }])
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
