import { hash } from 'node:crypto'
import type { Contact, Endpoint, Policy, SubjectEndpoint, Target } from './policy.ts'

/** Digits of the hash: one contact has some addresses, and rows of deliveries must not repeat them. */
const digits = 12

/** The name of an endpoint has no slash, so that no other endpoint has the name of a target. */
const targetName = ({ name }: Endpoint, kind: 'email' | 'webhook', address: string) =>
  `${name}/${kind}-${hash('sha256', address, 'hex').slice(0, digits)}`

/** Returns the endpoint's name of a target's name, which may be that of the endpoint itself. */
export const endpointNameOf = (target: string): string => target.split('/', 1)[0] ?? target

/**
 * Returns the addresses of a contact, each as an endpoint of its own: named `ENDPOINT/KIND-HASH`, so that each has its
 * own deliveries, and is left alone by itself. The same address has the same name in every process and at every time.
 */
export function targetsOf(endpoint: SubjectEndpoint, contact: Contact | undefined): readonly Target[] {
  const { email = [], webhook, language } = contact ?? {}
  const mails = email.map(
    (address): Target => ({
      ...{ ...endpoint, name: targetName(endpoint, 'email', address), type: 'email', to: [address], language },
    }),
  )
  if (webhook === undefined) return mails
  return [...mails, { ...endpoint, ...webhook, name: targetName(endpoint, 'webhook', webhook.url), type: 'webhook' }]
}

/**
 * Returns the target of this name for an alert about the subject; undefined if the policy, or the subject's contact,
 * has it no more.
 */
export function findTarget(
  { endpoints, contacts }: Pick<Policy, 'endpoints' | 'contacts'>,
  name: string,
  subject: string,
): Target | undefined {
  const endpoint = endpoints.get(endpointNameOf(name))
  if (endpoint === undefined || endpoint.type !== 'subject') return endpoint?.name === name ? endpoint : undefined
  return targetsOf(endpoint, contacts.get(subject)).find((one) => one.name === name)
}
