import { readdirSync, readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { parseBadPolicies } from '../testing/bad-policies.ts'
import { parsePolicy, policySchema } from './parse-policy.ts'
import { formatProblem } from './text-reader.ts'

const badPolicies = parseBadPolicies(readFileSync(new URL('./bad-policies.txt', import.meta.url), 'utf8'))

const fileOf = (path: string) => readFileSync(new URL(`../../../../${path}`, import.meta.url), 'utf8')
const validate = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false, allErrors: true }).compile(
  policySchema,
)

test("docs/weir.schema.json is what the reader's tables say; with -u this test writes it", async () => {
  const text = `${JSON.stringify(policySchema, null, 2)}\n`
  await expect(text).toMatchFileSnapshot('../../../../docs/weir.schema.json')
})

/** What an editor with the schema says of a text. */
function faultsOf(text: string): readonly string[] {
  const isRight = validate(parse(text, { logLevel: 'error' }))
  return isRight ? [] : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
}

test('editors find the schema by the first line of the shipped policy, and take the policy for right', () => {
  const text = fileOf('weir.yaml')
  expect(text.split('\n')[0]).toBe('# yaml-language-server: $schema=docs/weir.schema.json')
  expect(faultsOf(text)).toEqual([])
})

test('Everything that the shipped policy has commented out is right once it is not', () => {
  const text = fileOf('weir.yaml').replaceAll(/^( *)# (?= *(?:- \{|[\w-]+:(?: \{|$)))/gm, '$1')
  expect(faultsOf(text)).toEqual([])
  const read = parsePolicy(text, 'weir.yaml')
  if (read.kind === 'problems') throw new Error(read.problems.map(formatProblem).join('\n'))
  const { limits, watches, endpoints, contacts } = read.policy
  expect([...limits.values()].map(({ algorithm }) => algorithm)).toContain('sliding_log')
  expect([...limits.values()].some(({ blockMs }) => blockMs > 0)).toBe(true)
  expect([watches.size, contacts.get('acme')?.email, read.remarks]).toEqual([1, ['ops@acme.example'], []])
  expect([...endpoints.values()].map(({ type }) => type)).toEqual([
    'webhook',
    'slack',
    'teams',
    'pagerduty',
    'email',
    'subject',
  ])
})

/** Examples in the pages, those of a whole section as a policy without the others. */
const pages = ['policy.md', 'prices.md', 'limits.md', 'identity.md']
const examples = pages.flatMap((page) => {
  const blocks = fileOf(`docs/${page}`).split('```yaml\n').slice(1)
  return blocks.map((block, at) => [`${page} ${at + 1}`, block.split('```')[0] ?? ''] as const)
})

test.each(examples)('the example %s is right by the schema', (_, text) => {
  const whole = /^version:/m.test(text) ? text : `version: 1\n${text}`
  expect(faultsOf(whole)).toEqual([])
})

/** What a schema cannot say: it sees values, not the text they come from, and never two places together. */
const beyondSchema = [
  // The text.
  'a tag',
  'an alias',
  // Names that must be somewhere else.
  'an unknown limit',
  'an unknown plan',
  'an unknown upstream',
  'an unknown price list',
  'a price of an unknown route',
  'parameters that routes do not have',
  'a parameter that no route has',
  // What must not be in two places.
  'a host of two upstreams',
  'two upstreams for every host',
  'two routes for the same requests',
  'the same key twice',
  'thresholds of what is never used',
  'the same key id twice',
  "lines in each other's way",
  // How many places a currency has, and which tier is the last.
  'amounts finer than the currency',
  'tiers out of order',
  // How long durations are, and what the limit of an own version is.
  'blocks too short and too long',
  'blocks that do not grow',
  'settling for too long',
  'watches over too short or too long a time',
  'an own version beyond what its algorithm decides',
]

test('the schema refuses every bad policy, but for those that need more than a schema', () => {
  const passed = badPolicies.filter(({ text }) => {
    try {
      return faultsOf(text).length === 0
    } catch {
      return false
    }
  })
  expect(passed.map(({ name }) => name).toSorted()).toEqual(beyondSchema.toSorted())
})

test('the schema accepts every policy that the reader accepts', () => {
  const names = readdirSync(new URL('..', import.meta.url), { recursive: true, encoding: 'utf8' })
  const tests = names.filter((name) => name.endsWith('.test.ts'))
  const texts = tests.flatMap((name) => [
    ...fileOf(`packages/policy/src/${name}`).matchAll(/`(\nversion: 1\n[^`$]*)`/g),
  ])
  const right = texts.map(([, text = '']) => text).filter((text) => parsePolicy(text, 'test').kind === 'policy')
  expect(right.length).toBeGreaterThan(2)
  for (const text of right) expect([text, ...faultsOf(text)]).toEqual([text])
})
