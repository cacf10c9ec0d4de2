import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { parseBadPolicies } from '../testing/bad-policies.ts'
import { emptyPolicy, parsePolicy, readValues } from './parse-policy.ts'

const badPolicies = parseBadPolicies(readFileSync(new URL('./bad-policies.txt', import.meta.url), 'utf8'))

const file = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8')
const nothingKept = { upstreams: false, routes: false }
const asValues = (text: string) => readValues(parse(text, { uniqueKeys: false }), emptyPolicy, nothingKept).policy

/** What values cannot have: they are there once, and no longer YAML. */
const onlyInText = /is not valid YAML|is set twice|YAML alias/
const bad = badPolicies.filter(({ text, problems }) => !onlyInText.test([text, ...problems].join('\n')))

test.each(bad)('$name is refused without its text too', ({ text }) => {
  expect(asValues(text)).toBeUndefined()
})

/** Without a text there are no lines: problems say where another value is by its path. */
const elsewhere = / (?:on line \d+|at (?:routes|subjects|tokens|identity|limits)(?:\.[\w-]+|\[[^\]]*\])*)/
const withoutLines = (message: string) => message.replace(/ \(line \d+\)/, '').replace(elsewhere, '')

test.each(bad)('$name is reported in the same words when the policy is read from values', ({ text }) => {
  const parsed = parsePolicy(text, 'weir.yaml')
  const values = readValues(parse(text, { uniqueKeys: false }), emptyPolicy, nothingKept)
  const words = (problems: readonly { path: string; message: string }[]) =>
    problems.map(({ path, message }) => `${path}: ${withoutLines(message)}`).sort()
  expect(words(values.problems)).toEqual(parsed.kind === 'problems' && words(parsed.problems))
})

test('at least 50 of the bad policies can be read as values', () => {
  expect(bad.length).toBeGreaterThanOrEqual(50)
})

const examples = file('../../../../docs/policy.md')
  .split('```yaml\n')
  .slice(1)
  .map((text) => text.split('```')[0] ?? '')
  .filter((text) => text.startsWith('version'))

test.each([file('../../../../weir.yaml'), ...examples])('a right policy is the same without its text', (text) => {
  const parsed = parsePolicy(text, 'weir.yaml')
  expect(parsed.kind === 'policy' && parsed.policy).toEqual(asValues(text))
})
