import type { Policy } from '@weir/core/policy/policy.ts'
import { requirePolicy } from '@weir/core/policy/require-policy.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { expect, test } from 'vitest'
import { createEndpointSecrets } from './endpoint-secrets.ts'

const policyOf = (endpoints: object) =>
  requirePolicy(JSON.stringify({ version: 1, plans: { free: { limits: [] } }, endpoints }), 'weir.yaml')
const endpoint = (secretEnv: string) => ({ url: 'https://hooks.example.com/', secretEnv })
const secret = `whsec_${'a'.repeat(32)}`
const next = `whsec_${'b'.repeat(32)}`
const webhooksOf = ({ endpoints }: Policy) =>
  [...endpoints.values()].flatMap((one) => (one.type === 'webhook' ? [one] : []))
const log = createLogger('test', 'silent')

test('an endpoint that comes with a change and has no secret is named, kept waiting, and spoils no other', () => {
  const environment = { OPS_SECRET: secret, BAD_SECRET: 'whsec_short' }
  const secrets = createEndpointSecrets(policyOf({ ops: endpoint('OPS_SECRET') }), environment, log)
  expect(secrets.problems).toEqual([])
  const policy = policyOf({ ops: endpoint('OPS_SECRET'), bad: endpoint('BAD_SECRET'), none: endpoint('NO_SECRET') })
  secrets.follow(policy)
  expect(webhooksOf(policy).map((one) => secrets.signingSecrets(one))).toEqual([[secret], [], []])
  expect(secrets.problems).toEqual([
    expect.stringContaining('BAD_SECRET (endpoint bad)'),
    expect.stringContaining('NO_SECRET (endpoint none)'),
  ])
  expect(secrets.problems.join()).not.toContain('whsec_short')
  secrets.follow(policyOf({}))
  expect(secrets.problems).toEqual([])
})

test('while one secret replaces another there are two, the current first; more, or a bad one beside a good one, are none', () => {
  const environment = { TWO: `${next} ${secret}`, THREE: `${next} ${secret} ${secret}`, HALF: `${next} whsec_` }
  const policy = policyOf({ two: endpoint('TWO'), three: endpoint('THREE'), half: endpoint('HALF') })
  const secrets = createEndpointSecrets(policy, environment, log)
  expect(webhooksOf(policy).map((one) => secrets.signingSecrets(one))).toEqual([[next, secret], [], []])
})

test('a channel of Slack needs its URL, and mail a server', () => {
  const policy = policyOf({ chat: { type: 'slack', urlEnv: 'CHAT' }, mail: { type: 'email', to: ['ops@example.com'] } })
  expect(createEndpointSecrets(policy, { CHAT: 'hooks.slack.com/x' }, log).problems).toEqual([
    expect.stringContaining('CHAT (endpoint chat)'),
    expect.stringContaining('WEIR_SMTP_URL (endpoint mail)'),
  ])
  const environment = { CHAT: 'https://hooks.example.com/x', WEIR_SMTP_URL: 'smtp://127.0.0.1:25' }
  const secrets = createEndpointSecrets(policy, environment, log)
  expect(secrets.problems).toEqual([])
  const chat = policy.endpoints.get('chat')
  expect(chat?.type === 'slack' && secrets.slackUrl(chat)).toBe('https://hooks.example.com/x')
})
