import { anchorOf } from '@weir/docs/anchor-of.ts'
import { placeOf } from '@weir/docs/pages.ts'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { textOf, tree } from './read-tree.ts'
import { readMarkdown } from './rules/markdown.ts'
import { codeMetrics } from './rules/names-in-code.ts'

interface Rule {
  readonly alert: string
  readonly for?: string
  readonly labels: { readonly severity: string }
  readonly annotations: Readonly<Record<'summary' | 'description' | 'runbook_url', string>>
}

const { groups }: { groups: readonly { readonly rules: readonly Rule[] }[] } = parse(
  textOf('infra/prometheus/alerts.rules.yml'),
)
const rules = groups.flatMap((group) => group.rules)
const runbook = textOf('docs/runbook.md')
/** Where the site of the documents has it. */
const pageOfRunbook = placeOf('docs/runbook.md').replace(/\.md$/, '.html')

/** It registers what it counts in four files: they become one with the console's features. */
const consoleYet = 'services/console/'

test('A service registers its metrics in one file, metrics.ts', () => {
  const registering = tree.filter(({ path, text }) => path.startsWith('services/') && text.includes('registerScraped('))
  expect(registering.map(({ path }) => path).filter((path) => !path.startsWith(consoleYet))).toEqual([
    'services/alerting/src/metrics.ts',
    'services/ingress/src/metrics.ts',
    'services/metering/src/metrics.ts',
  ])
})

describe('docs/runbook.md', () => {
  const headings = readMarkdown({ path: 'docs/runbook.md', text: runbook }).headings.map(({ text }) => text)

  test('has a heading for every alert, in their order, and no other', () => {
    expect(headings.slice(1)).toEqual([...new Set(rules.map(({ alert }) => alert))])
  })

  test('names in its table of faults only alerts that there are', () => {
    const { rows } = readMarkdown({ path: 'docs/runbook.md', text: runbook })
    const named = rows.flatMap(({ cells: [, ...cells] }) => cells.join().match(/\w+(?=`)/g) ?? [])
    expect(named.length).toBeGreaterThan(20)
    expect(named.filter((name) => !headings.includes(name))).toEqual([])
  })

  test('says of every alert what customers notice, where to look first, what repairs it and what not to do', () => {
    const sections = runbook.split('\n## ').slice(1)
    const wanted =
      /^\w+\n\n\S[^*]*\*\*Customers\*\*.*\n\*\*Look:\*\* .*;.*;.*\n\*\*Repair(?::\*\*|\*\*) .*\n\*\*Do not\*\* /s
    expect(sections.filter((section) => !wanted.test(section))).toEqual([])
  })
})

test('every alert has a severity, a summary, a description with its value, and the address of its heading', () => {
  const found = rules.filter(
    ({ alert, labels, annotations: { summary, description, runbook_url } }) =>
      !['page', 'ticket'].includes(labels.severity) ||
      summary.length < 10 ||
      !description.includes('$value') ||
      runbook_url !== `https://weir-docs.example/${pageOfRunbook}#${anchorOf(alert)}`,
  )
  expect(found).toEqual([])
})

test('what Kafka keeps is what RetentionNear compares with', () => {
  const { topics } = JSON.parse(textOf('infra/kafka/topics.json'))
  const compared = [...textOf('infra/prometheus/alerts.rules.yml').matchAll(/topic="(.*)"}\) > 0\.5 \* (\d+)/g)]
  expect(compared.map(([, topic = '', seconds]) => [topic, Number(seconds) * 1_000])).toEqual(
    compared.map(([, topic = '']) => [topic, Number(topics[topic].config['retention.ms'])]),
  )
  expect(compared).toHaveLength(2)
})

test('every metric that rules, dashboards and the table of what to watch name is one that a service counts', () => {
  const known = new Set(codeMetrics(tree))
  const naming = tree.filter(({ path }) =>
    /^infra\/(?:prometheus|grafana\/dashboards)\/|^docs\/monitoring\.md$/.test(path),
  )
  const unknown = naming.flatMap(({ path, text }) =>
    [...text.matchAll(/\bweir_[a-z0-9_]+/g)].flatMap(([name]) =>
      known.has(name.replace(/_(?:bucket|sum|count)$/, '')) ? [] : [`${path}: ${name}`],
    ),
  )
  expect(unknown).toEqual([])
})
