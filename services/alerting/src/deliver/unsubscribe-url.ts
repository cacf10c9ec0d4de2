import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import { mailHashOf } from '@weir/policy/contact-targets.ts'
import type { EmailEndpoint } from '@weir/policy/policy.ts'
import { signUnsubscription } from '@weir/policy/unsubscribe-token.ts'
import { signingKeysOf } from '@weir/runtime/signing-keys.ts'

/** Returns the URL by which the recipient of a mail unsubscribes; empty for mail that is not sent to a contact. */
export type UnsubscribeUrl = (endpoint: EmailEndpoint, alert: AlertV1) => string

/** Returns what makes these URLs; without a key, or without the console's address, there are none. */
export function createUnsubscribeUrl(keyText: () => string, console: URL | undefined): UnsubscribeUrl {
  return ({ name }, { subject }) => {
    const addressHash = mailHashOf(name)
    if (addressHash === undefined || console === undefined) return ''
    const token = signUnsubscription(signingKeysOf(keyText()), { subject, addressHash })
    return token === undefined ? '' : new URL(`/unsubscribe/${token}`, console).href
  }
}
