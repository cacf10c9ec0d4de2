import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { promtoolTests, ruleOf } from './promtool-tests.ts'
import { cases } from './rule-cases.ts'

const folder = resolve('infra/prometheus')
const scratch = mkdtempSync(join(tmpdir(), 'weir-rules-'))
afterAll(() => rmSync(scratch, { recursive: true }))

/** What promtool says; it is in Debian's package `prometheus`. */
async function promtool(...args: string[]): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)('promtool', args)
  return stdout + stderr
}

interface RuleGroup {
  readonly name: string
  readonly rules: readonly { readonly alert: string; readonly labels: { readonly severity: string } }[]
}

/** In the order in which rules read each other. */
const ruleFiles = ['recording.rules.yml', 'alerts.rules.yml'].map((name) => join(folder, name))
const [recorded = [], alerts = []] = ruleFiles.map((file): RuleGroup[] => parse(readFileSync(file, 'utf8')).groups)

test('promtool accepts the configuration of Prometheus and every rule', async () => {
  expect(await promtool('check', 'config', '--lint-fatal', join(folder, 'prometheus.yml'))).toContain('SUCCESS')
})

test('every rule has a case', () => {
  const rules = alerts.flatMap(({ rules }) => rules.map(({ alert, labels }) => `${alert} ${labels.severity}`))
  expect([...new Set(Object.keys(cases).map(ruleOf))].toSorted()).toEqual(rules.toSorted())
})

test.each(Object.entries(promtoolTests(cases)))(
  'every rule, evaluated each %s, fires, and neither a hair below nor without its series',
  async (every, tests) => {
    const file = join(scratch, `${every}.json`)
    const group_eval_order = [...recorded, ...alerts].map(({ name }) => name)
    writeFileSync(file, JSON.stringify({ rule_files: ruleFiles, group_eval_order, evaluation_interval: every, tests }))
    expect(await promtool('test', 'rules', file)).toContain('SUCCESS')
  },
)
