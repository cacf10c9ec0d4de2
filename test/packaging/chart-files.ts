import { readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { clickhouseVariables } from '@weir/clickhouse/variables.ts'
import { kafkaVariables } from '@weir/kafka/kafka-variables.ts'
import type { Variables } from '@weir/runtime/read-config.ts'
import { readConfigs } from '../repo/read-configs.ts'
import { valuesSchema } from './chart-schema.ts'

/** The chart's folder, from the root of the repository. */
export const chartFolder = 'infra/helm/weir'

/** The variables that a program of the chart reads, and those of them that it must have. */
export interface Reads {
  readonly reads: readonly string[]
  readonly required: readonly string[]
}

const inTree = (path: string) => resolve(import.meta.dirname, '../..', path)
const read = (path: string) => readFileSync(inTree(path), 'utf8')

const readsOf = (variables: Variables): Reads => {
  const declared = Object.values(variables)
  const required = declared.filter(({ fallback }) => fallback === undefined)
  return { reads: declared.map(({ name }) => name), required: required.map(({ name }) => name) }
}

/** By the names that the templates ask for: the services, and the commands that run as jobs. */
export async function programsOfChart(): Promise<Readonly<Record<string, Reads>>> {
  const services = (await readConfigs()).map(({ service, variables }) => [service, readsOf(variables)] as const)
  const kafka = readsOf(kafkaVariables)
  return {
    ...Object.fromEntries(services),
    topics: kafka,
    migrate: readsOf(clickhouseVariables),
    apply: { reads: ['WEIR_CONSOLE_URL', 'WEIR_ADMIN_TOKEN', 'WEIR_POLICY_FILE'], required: ['WEIR_ADMIN_TOKEN'] },
    drain: { reads: [...kafka.reads, 'WEIR_JOURNAL_DIR'], required: [...kafka.required, 'WEIR_JOURNAL_DIR'] },
  }
}

interface ValueRow {
  readonly name: string
  readonly value: string
  readonly about: string
}

/** The rows of values.yaml: each key without keys of its own has a comment above it, or the file is refused. */
export function valueRows(text: string): ValueRow[] {
  const rows: ValueRow[] = []
  const path: string[] = []
  let comment: string[] = []
  for (const line of text.split('\n')) {
    const [, indent = '', about, key, value = ''] = /^( *)(?:# ?(.*)|(\w+): ?(.*))$/.exec(line) ?? []
    if (about !== undefined) comment.push(about)
    else if (key !== undefined) {
      path.splice(indent.length / 2, path.length, key)
      if (value !== '' && comment.length === 0) throw new Error(`values.yaml says nothing about ${path.join('.')}`)
      if (value !== '') rows.push({ name: path.join('.'), value, about: comment.join(' ') })
      comment = []
    } else comment = []
  }
  return rows
}

function readme(values: string): string {
  const rows = valueRows(values).map(({ name, value, about }) => `| \`${name}\` | \`${value}\` | ${about} |`)
  return `# The chart

Runs Weir's services on Kubernetes, beside a Redis, a Kafka and a ClickHouse of your own. [How to install
it](../../../docs/deploy/kubernetes.md). \`npm run chart\` makes this page from \`values.yaml\`.

| Value | Default | What it is |
| --- | --- | --- |
${rows.join('\n')}
`
}

const json = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`

/** The text of each file that `npm run chart` writes, by its path in the chart. */
export async function chartFiles(): Promise<Readonly<Record<string, string>>> {
  const programs = await programsOfChart()
  const secrets = (await readConfigs()).flatMap(({ variables }) =>
    Object.values(variables).flatMap(({ name, isSecret }) => (isSecret === true ? [name] : [])),
  )
  return {
    'files/alerts.rules.yml': read('infra/prometheus/alerts.rules.yml'),
    'files/recording.rules.yml': read('infra/prometheus/recording.rules.yml'),
    ...Object.fromEntries(
      readdirSync(inTree('infra/grafana/dashboards')).map((name) => [
        `files/dashboards/${name}`,
        read(`infra/grafana/dashboards/${name}`),
      ]),
    ),
    'files/variables.json': json(programs),
    'values.schema.json': json(valuesSchema(programs, new Set(secrets))),
    'README.md': readme(read(`${chartFolder}/values.yaml`)),
  }
}
