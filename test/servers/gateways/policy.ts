import { randomUUID } from 'node:crypto'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'

/** What the tests of gateways call as. The key of each subject is its name. */
const callers = ['four', 'more', 'wide', 'keyed', 'away', 'soft', 'cut', 'human', 'upload', 'many'] as const

/** Redis may have counted for an earlier run. */
const run = randomUUID()

export const callerOf = (gateway: string, caller: (typeof callers)[number]) => `${run}-${gateway}-${caller}`

/** As many limits as a decision may have, each with a name as long as it may be. */
const longNames = Array.from({ length: 15 }, (_, at) => `many-${at}-`.padEnd(64, 'x'))

/** The page of a challenge, nearly as long as it may be. */
const longPage = `https://example.com/${'c'.repeat(1_000)}`

const plans = ['wide', 'soft', 'cut', 'human', 'many']
const planOf = (name: string) => plans.find((plan) => name.endsWith(`-${plan}`)) ?? 'free'

/**
 * The gateways of a machine are its trusted proxies, and may even name subjects: nothing of a client's may pass for
 * theirs.
 */
export const policyOf = (gateways: readonly string[]) => {
  const names = gateways.flatMap((gateway) => callers.map((caller) => callerOf(gateway, caller)))
  const day = { algorithm: 'fixed_window', period: 'day' }
  return {
    version: 1,
    identity: {
      trustedProxies: ['127.0.0.1/32', '::1/128'],
      trustedHeaders: { from: ['127.0.0.1/32'], subject: 'x-weir-subject', plan: 'free' },
    },
    plans: {
      free: { limits: ['daily', 'by-address'] },
      wide: { limits: ['by-address'] },
      many: { limits: longNames },
      soft: { limits: ['soft'] },
      cut: { limits: ['cut'] },
      human: { limits: ['human'] },
    },
    limits: {
      ...Object.fromEntries(longNames.map((name) => [name, { ...day, size: 1, onExceed: { challenge: longPage } }])),
      daily: { ...day, size: 8 },
      soft: { ...day, size: 1, onExceed: 'degrade' },
      cut: { ...day, size: 1, onExceed: 'drop' },
      human: { ...day, size: 1, onExceed: { challenge: 'https://example.com/captcha' } },
      'by-address': { ...day, size: 1_000, by: ['subject', 'ip'] },
    },
    routes: [
      { match: 'POST /v1/dear', cost: 5 },
      { match: 'GET /v1/dear', cost: 5 },
      { match: 'GET /v1/free', cost: 0 },
      { match: 'GET /v1/never', cost: 9 },
    ],
    subjects: Object.fromEntries(
      names.map((name) => [name, { plan: planOf(name), keys: [{ sha256: sha256(name), id: `key-of-${name}` }] }]),
    ),
  }
}
