import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { expect, onTestFinished, test } from 'vitest'
import { createProblemFinder } from './endpoint-problems.ts'

const policyOf = (endpoints: object) =>
  requirePolicy(JSON.stringify({ version: 1, plans: { free: { limits: [] } }, endpoints }), 'weir.yaml')
const endpoint = (secretEnv: string) => ({ url: 'https://hooks.example.com/', secretEnv })
const secret = `whsec_${'a'.repeat(32)}`
const next = `whsec_${'b'.repeat(32)}`
const around = { templates: { findProblems: () => [] }, log: createLogger('test', 'silent') }
const finderOf = (endpoints: object, environment: Readonly<Record<string, string>>) => {
  const policy = policyOf(endpoints)
  return createProblemFinder({ ...around, policyInForce: () => policy, environment })
}

test('An endpoint that comes with a change and has no secret is named by its variable, and never by its value', () => {
  const environment = { OPS_SECRET: secret, BAD_SECRET: 'whsec_short' }
  let policy = policyOf({ ops: endpoint('OPS_SECRET') })
  const findProblems = createProblemFinder({ ...around, policyInForce: () => policy, environment })
  expect(findProblems()).toEqual([])
  policy = policyOf({ ops: endpoint('OPS_SECRET'), bad: endpoint('BAD_SECRET'), none: endpoint('NO_SECRET') })
  expect(findProblems()).toEqual([
    expect.stringContaining('BAD_SECRET (endpoint bad)'),
    expect.stringContaining('NO_SECRET (endpoint none)'),
  ])
  expect(findProblems().join()).not.toContain('whsec_short')
  policy = policyOf({})
  expect(findProblems()).toEqual([])
})

test('A webhook that names no secret needs the key of which Weir makes one', () => {
  const endpoints = { own: { url: 'https://hooks.example.com/' } }
  expect(finderOf(endpoints, {})()).toEqual([expect.stringContaining('WEIR_UNSUBSCRIBE_KEY (endpoint own)')])
  expect(finderOf(endpoints, { WEIR_UNSUBSCRIBE_KEY: 'k'.repeat(32) })()).toEqual([])
})

test('During a rotation there are two secrets; three, or a malformed second one, count as none', () => {
  const environment = { TWO: `${next} ${secret}`, THREE: `${next} ${secret} ${secret}`, HALF: `${next} whsec_` }
  const problems = finderOf({ two: endpoint('TWO'), three: endpoint('THREE'), half: endpoint('HALF') }, environment)()
  expect(problems.map((one) => one.split(' must')[0])).toEqual(['THREE (endpoint three)', 'HALF (endpoint half)'])
})

test('A Slack endpoint without a URL, and mail without a server, are named as problems', () => {
  const endpoints = { chat: { type: 'slack', urlEnv: 'CHAT' }, mail: { type: 'email', to: ['ops@example.com'] } }
  expect(finderOf(endpoints, { CHAT: 'hooks.slack.com/x' })()).toEqual([
    expect.stringContaining('CHAT (endpoint chat)'),
    expect.stringContaining('WEIR_SMTP_URL (endpoint mail)'),
  ])
  const environment = { CHAT: 'https://hooks.example.com/x', WEIR_SMTP_URL: 'smtp://127.0.0.1:25' }
  expect(finderOf(endpoints, environment)()).toEqual([])
})

test('A file that NAME_FILE names is read each time; while it is wrong, or beside NAME, its endpoint is named', () => {
  const dir = mkdtempSync(join(tmpdir(), 'weir-endpoint-secrets-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  const file = join(dir, 'ops')
  const endpoints = { ops: endpoint('OPS'), mail: { type: 'email', to: ['ops@example.com'] } }
  const environment = { OPS_FILE: file, WEIR_SMTP_URL_FILE: '/not/read/here' }
  const findProblems = finderOf(endpoints, environment)
  const named = (what: string) => [
    expect.stringMatching(`^the file of OPS_FILE \\(endpoint ops\\) must contain whsec_.*${what}`),
  ]
  expect(findProblems()).toEqual(named('ENOENT'))
  for (const text of [`${secret}\n`, `${next} ${secret}\n`]) {
    writeFileSync(file, text)
    expect(findProblems()).toEqual([])
  }
  writeFileSync(file, 'whsec_short')
  expect(findProblems()).toEqual(named('write it again'))
  expect(findProblems().join()).not.toContain('whsec_short')
  const both = finderOf(endpoints, { ...environment, OPS: secret })
  expect(both()).toEqual([expect.stringContaining('OPS or OPS_FILE (endpoint ops)')])
})
