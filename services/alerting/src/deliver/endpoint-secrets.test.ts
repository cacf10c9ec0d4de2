import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Policy, SlackEndpoint } from '@weir/policy/policy.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { expect, onTestFinished, test } from 'vitest'
import { createEndpointSecrets } from './endpoint-secrets.ts'

const policyOf = (endpoints: object) =>
  requirePolicy(JSON.stringify({ version: 1, plans: { free: { limits: [] } }, endpoints }), 'weir.yaml')
const endpoint = (secretEnv: string) => ({ url: 'https://hooks.example.com/', secretEnv })
const secret = `whsec_${'a'.repeat(32)}`
const next = `whsec_${'b'.repeat(32)}`
const webhooksOf = ({ endpoints }: Policy) =>
  [...endpoints.values()].flatMap((one) => (one.type === 'webhook' ? [one] : []))
const log = createLogger('test', 'silent')

test('an endpoint that comes with a change and has no secret is named and waits, and affects no other', () => {
  const environment = { OPS_SECRET: secret, BAD_SECRET: 'whsec_short' }
  let policy = policyOf({ ops: endpoint('OPS_SECRET') })
  const secrets = createEndpointSecrets(() => policy, environment, log)
  expect(secrets.findProblems()).toEqual([])
  policy = policyOf({ ops: endpoint('OPS_SECRET'), bad: endpoint('BAD_SECRET'), none: endpoint('NO_SECRET') })
  expect(webhooksOf(policy).map((one) => secrets.signingSecrets(one))).toEqual([[secret], [], []])
  expect(secrets.findProblems()).toEqual([
    expect.stringContaining('BAD_SECRET (endpoint bad)'),
    expect.stringContaining('NO_SECRET (endpoint none)'),
  ])
  expect(secrets.findProblems().join()).not.toContain('whsec_short')
  policy = policyOf({})
  expect(secrets.findProblems()).toEqual([])
})

test('during a rotation there are two secrets, the current first; three, or a malformed second one, count as none', () => {
  const environment = { TWO: `${next} ${secret}`, THREE: `${next} ${secret} ${secret}`, HALF: `${next} whsec_` }
  const policy = policyOf({ two: endpoint('TWO'), three: endpoint('THREE'), half: endpoint('HALF') })
  const secrets = createEndpointSecrets(() => policy, environment, log)
  expect(webhooksOf(policy).map((one) => secrets.signingSecrets(one))).toEqual([[next, secret], [], []])
})

test('a Slack endpoint without a URL, and mail without a server, are named as problems', () => {
  const policy = policyOf({ chat: { type: 'slack', urlEnv: 'CHAT' }, mail: { type: 'email', to: ['ops@example.com'] } })
  expect(createEndpointSecrets(() => policy, { CHAT: 'hooks.slack.com/x' }, log).findProblems()).toEqual([
    expect.stringContaining('CHAT (endpoint chat)'),
    expect.stringContaining('WEIR_SMTP_URL (endpoint mail)'),
  ])
  const environment = { CHAT: 'https://hooks.example.com/x', WEIR_SMTP_URL: 'smtp://127.0.0.1:25' }
  const secrets = createEndpointSecrets(() => policy, environment, log)
  expect(secrets.findProblems()).toEqual([])
  const chat = policy.endpoints.get('chat')
  expect(chat?.type === 'slack' && secrets.slackUrl(chat)).toBe('https://hooks.example.com/x')
})

test('a file that NAME_FILE names is read for each delivery; while it is wrong, or beside NAME, its endpoint waits and is named', () => {
  const dir = mkdtempSync(join(tmpdir(), 'weir-endpoint-secrets-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  const file = join(dir, 'ops')
  const policy = policyOf({ ops: endpoint('OPS'), mail: { type: 'email', to: ['ops@example.com'] } })
  const environment = { OPS_FILE: file, WEIR_SMTP_URL_FILE: '/not/read/here' }
  const secrets = createEndpointSecrets(() => policy, environment, log)
  const now = () => [webhooksOf(policy).flatMap((one) => secrets.signingSecrets(one)), secrets.findProblems()]
  const named = (what: string) => [
    expect.stringMatching(`^the file of OPS_FILE \\(endpoint ops\\) must hold whsec_.*${what}`),
  ]
  expect(now()).toEqual([[], named('ENOENT')])
  writeFileSync(file, `${secret}\n`)
  expect(now()).toEqual([[secret], []])
  writeFileSync(file, `${next} ${secret}\n`)
  expect(now()).toEqual([[next, secret], []])
  writeFileSync(file, 'whsec_short')
  expect(now()).toEqual([[], named('write it again')])
  expect(secrets.findProblems().join()).not.toContain('whsec_short')
  const both = createEndpointSecrets(() => policy, { ...environment, OPS: secret }, log)
  expect(both.findProblems()).toEqual([expect.stringContaining('OPS or OPS_FILE (endpoint ops)')])
  const channel: SlackEndpoint = {
    name: 'chat',
    type: 'slack',
    urlEnv: 'OPS',
    allowPrivate: false,
    only: {},
    isPaused: false,
  }
  writeFileSync(file, 'https://hooks.example.com/x\n')
  expect(secrets.slackUrl(channel)).toBe('https://hooks.example.com/x')
})
