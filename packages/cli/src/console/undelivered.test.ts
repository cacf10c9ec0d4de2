import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { expect, it } from 'vitest'
import { undelivered } from './undelivered.ts'

const endpoints = {
  named: { url: 'https://hooks.example.com/', secretEnv: 'OPS_SECRET' },
  made: { url: 'https://hooks.example.com/' },
  inside: { url: 'http://10.0.0.7/' },
  six: { url: 'http://[::1]:9/' },
  local: { url: 'http://localhost:9000/', allowPrivate: true },
  chat: { type: 'slack', urlEnv: 'CHAT_URL' },
  mail: { type: 'email', to: ['ops@example.com'] },
  demo: { url: 'http://127.0.0.1:8071/', secretEnv: 'WEIR_DEMO_WEBHOOK_SECRET', allowPrivate: true },
}
const policy = requirePolicy(JSON.stringify({ version: 1, endpoints }), 'weir.yaml')

it('a policy’s endpoints that get nothing are named with the reason: a variable that is missing, a private address', () => {
  const addresses = [
    'endpoint inside: 10.0.0.7 is a private address, so alerts are not delivered. Add allowPrivate: true.',
    'endpoint six: [::1] is a private address, so alerts are not delivered. Add allowPrivate: true.',
  ]
  expect(undelivered(policy, undefined)).toEqual(addresses)
  const set = ['OPS_SECRET', 'CHAT_URL_FILE', 'WEIR_SMTP_URL']
  expect(undelivered(policy, (name) => set.includes(name))).toEqual(addresses)
  expect(undelivered(policy, () => false).filter((line) => line.includes('is not set'))).toEqual([
    'endpoint named: OPS_SECRET is not set, so nothing is delivered to it.',
    'endpoint chat: CHAT_URL is not set, so nothing is delivered to it.',
    'endpoint mail: WEIR_SMTP_URL is not set, so nothing is delivered to it.',
  ])
})
