import { createHash } from 'node:crypto'

/** How many exchanges of a subject may be in flight; and apart from these, how many of a gateway's user. */
export const slotsMax = 5
/** How long a check's slot and its tokens are held, and the slot of a gateway. */
export const holdMs = 30_000

/** Tokens in a month: of half of the subjects more than they use, of the others fewer than they ask for. */
export interface Tokens {
  readonly many: number
  readonly few: number
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

export const keyOfExchanges = (subject: string): string => `key-of-${subject}`

/** Which of the tokens a subject has. */
export const planOf = (at: number): keyof Tokens => (at % 2 === 0 ? 'many' : 'few')

/** Each subject has slots by proxy and check, tokens by check. Users of a gateway have slots of their own over gRPC. */
export const exchangesPolicy = (subjects: readonly string[], upstream: string, { many, few }: Tokens): string => {
  const tokens = { algorithm: 'fixed_window', period: 'month', unit: 'tokens', onUnavailable: 'deny' }
  const slots = { algorithm: 'concurrency', size: slotsMax, onUnavailable: 'deny' }
  return JSON.stringify({
    version: 1,
    plans: { many: { limits: ['in-flight', 'tokens'] }, few: { limits: ['in-flight', 'tokens-few'] } },
    limits: {
      tokens: { ...tokens, size: many },
      'tokens-few': { ...tokens, size: few },
      'in-flight': slots,
      streams: { ...slots, expires: `${holdMs}ms`, by: ['attribute:user'] },
    },
    routes: [{ match: 'DESCRIPTOR /streams/user/:user', limits: ['streams'], beyond: 'charge' }],
    upstreams: { counting: { url: upstream, hosts: ['*'], timeout: '2m' } },
    subjects: Object.fromEntries(
      subjects.map((name, at) => [name, { plan: planOf(at), keys: [{ sha256: sha256(keyOfExchanges(name)) }] }]),
    ),
  })
}
