import { createHmac } from 'node:crypto'

/** What is signed begins with it: no other text under the same key is a secret of this kind. */
const purpose = 'weir-webhook '

/**
 * Returns the secrets that sign the webhooks of an endpoint without `secretEnv`, in the form of Standard Webhooks: one
 * for each key of WEIR_UNSUBSCRIBE_KEY, the current one first. Each is derived, so that none is stored and none needs a
 * restart. Two endpoints never share one.
 */
export const endpointSecrets = (keys: readonly string[], endpoint: string): readonly string[] =>
  keys.map((key) => `whsec_${createHmac('sha256', key).update(`${purpose}${endpoint}`).digest('base64')}`)
