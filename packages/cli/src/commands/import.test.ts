import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parsePolicy } from '@weir/policy/reader/parse-policy.ts'
import { expect, onTestFinished, test } from 'vitest'
import { noProgress } from '../terminal/progress.ts'
import { importFrom } from './import.ts'

/** Runs the command on files of these texts, named 0.yaml and so on. */
function run(texts: readonly string[], { json = false, shadow = false } = {}) {
  const cwd = mkdtempSync(join(tmpdir(), 'weir-test-import-'))
  onTestFinished(() => rmSync(cwd, { recursive: true }))
  const files = texts.map((text, at) => {
    writeFileSync(join(cwd, `${at}.yaml`), text)
    return join(cwd, `${at}.yaml`)
  })
  const [printed, said]: [string[], string[]] = [[], []]
  const context = { environment: {}, cwd, signal: AbortSignal.any([]), progress: noProgress }
  const { isWhole } = importFrom(
    'envoy',
    files,
    { json, shadow },
    { ...context, print: (text) => printed.push(text), report: (line) => said.push(line) },
  )
  return { printed: printed.join('\n'), said, isWhole }
}

test.each([
  ['all of it is there', 'key: a', true],
  ['something could not be carried over', 'key: "a*"', false],
])('it says that %s', (_, key, isWhole) => {
  const rateLimit = 'rate_limit: { unit: day, requests_per_unit: 1 }'
  expect(run([`domain: d\ndescriptors: [{ ${key}, ${rateLimit} }]`])).toMatchObject({ isWhole })
})

const configuration = `
domain: edge
descriptors:
- key: remote_address
  detailed_metric: true
  rate_limit: { unit: second, requests_per_unit: 10 }
`

test('prints a policy that is valid as it is, and reports on standard error what a person should know', () => {
  const { printed, said } = run([configuration])
  expect(said).toEqual([expect.stringMatching(/^0\.yaml:5 {2}to know: detailed_metric/)])
  expect(printed).toContain(`# ${said[0]}`)
  const parsed = parsePolicy(printed, 'weir.yaml')
  expect(parsed.kind === 'policy' && parsed.policy.limits.get('edge.remote_address')).toMatchObject({
    algorithm: 'fixed_window',
    size: 10,
    span: { kind: 'window', ms: 1_000 },
    by: [{ kind: 'attribute', name: 'remote_address' }],
  })
})

test('prints JSON on one line', () => {
  const { printed, said } = run([configuration], { json: true })
  expect(said).toEqual([])
  expect(JSON.parse(printed)).toMatchObject({
    policy: { version: 1, routes: [{ match: 'DESCRIPTOR /edge/remote_address/:remote_address' }] },
    notes: [{ file: '0.yaml', line: 5, kind: 'info', advice: expect.any(String) }],
  })
})

test('in shadow every limit refuses nothing, whatever it was', () => {
  const { printed } = run([configuration], { shadow: true })
  const parsed = parsePolicy(printed, 'weir.yaml')
  expect(parsed.kind === 'policy' && [...parsed.policy.limits.values()].map(({ mode }) => mode)).toEqual(['shadow'])
})

test('a file that is no configuration, or not there, is refused with every problem', () => {
  expect(() => run(['domain: d\ndescriptors:\n- {}\n- {}'])).toThrow(
    /not a configuration of envoyproxy\/ratelimit\.\n {2}0\.yaml:3 .*\n {2}0\.yaml:4 /,
  )
  const context = {
    environment: {},
    cwd: '/',
    signal: AbortSignal.any([]),
    progress: noProgress,
    print: () => {},
    report: () => {},
  }
  expect(() => importFrom('envoy', ['/there/is/none.yaml'], { json: false, shadow: false }, context)).toThrow(
    'there is no such file',
  )
})
