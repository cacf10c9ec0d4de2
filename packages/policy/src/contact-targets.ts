import { hash } from 'node:crypto'
import { type Endpoint, type EndpointOf, hasOwnAlerts, type OwnAlerts, type Policy, type Target } from './policy.ts'

type PendingAddress = OwnAlerts['pending'][number]

/** Digits of the hash: one contact has some addresses, and rows of deliveries must not repeat them. */
const digits = 12

/** What an address is named by where it must not be read. */
export const hashOf = (address: string) => hash('sha256', address, 'hex').slice(0, digits)

/** The name of an endpoint has no slash, so that no other endpoint has the name of a target. */
const targetName = ({ name }: Endpoint, kind: 'email' | 'webhook' | 'confirm', addressHash: string) =>
  `${name}/${kind}-${addressHash}`

/** Returns the addresses of mail of a subject, its own choice included, with what they are named by. */
export const addressesOf = (
  policy: Pick<Policy, 'contacts' | 'ownAlerts' | 'subjects'>,
  subject: string,
): readonly { readonly address: string; readonly hash: string }[] => {
  const own = ownAlertsOf(policy, subject)?.email ?? []
  return [...new Set([...(policy.contacts.get(subject)?.email ?? []), ...own])].map((address) => ({
    address,
    hash: hashOf(address),
  }))
}

/** Returns what a customer has chosen, while it may choose; undefined for nothing. */
export function ownAlertsOf(policy: Pick<Policy, 'ownAlerts' | 'subjects'>, subject: string): OwnAlerts | undefined {
  const known = policy.subjects.get(subject)
  return known !== undefined && hasOwnAlerts(known) ? policy.ownAlerts.get(subject) : undefined
}

/** Returns the hash in the name of a target that is an address of mail of a contact; undefined for another name. */
export const mailHashOf = (target: string): string | undefined => /\/email-([0-9a-f]+)$/.exec(target)?.[1]

/** Returns the hash in the name of a target that gets a link to confirm its address; undefined for another name. */
export const confirmHashOf = (target: string): string | undefined => /\/confirm-([0-9a-f]+)$/.exec(target)?.[1]

/** Returns the name of the target that gets a link to confirm its address. */
export const confirmTarget = (endpoint: Endpoint, pending: PendingAddress): string =>
  targetName(endpoint, 'confirm', confirmHash(pending))

/** What the link of an unconfirmed address is for: this address, added at this time. Whole, so that none collide. */
export const confirmHash = ({ email, atMs }: PendingAddress): string => hash('sha256', `${email} ${atMs}`, 'hex')

/** Returns the endpoint's name of a target's name, which may be that of the endpoint itself. */
export const endpointNameOf = (target: string): string => target.split('/', 1)[0] ?? target

type TargetSources = Pick<Policy, 'contacts' | 'unsubscribed' | 'ownAlerts' | 'subjects'>

/**
 * Returns the addresses of a subject's contact that get alerts, each as an endpoint of its own: named
 * `ENDPOINT/KIND-HASH`, so that each has its own deliveries, and is left alone by itself. The same address has the same
 * name in every process and at every time. Addresses that unsubscribed are left out.
 */
export function targetsOf(endpoint: EndpointOf<'subject'>, policy: TargetSources, subject: string): readonly Target[] {
  const out = policy.unsubscribed.get(subject) ?? []
  const mails = addressesOf(policy, subject).flatMap(({ address, hash }): readonly Target[] => {
    if (out.includes(hash)) return []
    const name = targetName(endpoint, 'email', hash)
    return [{ ...endpoint, name, type: 'email', to: [address] }]
  })
  const webhook = policy.contacts.get(subject)?.webhook
  if (webhook === undefined) return mails
  return [
    ...mails,
    { ...endpoint, ...webhook, name: targetName(endpoint, 'webhook', hashOf(webhook.url)), type: 'webhook' },
  ]
}

/**
 * Returns the target of this name for an alert about the subject; undefined if the policy, or the subject's contact,
 * has it no more, or the address has unsubscribed. An unconfirmed address is the target of its link alone.
 */
export function findTarget(
  policy: TargetSources & Pick<Policy, 'endpoints'>,
  name: string,
  subject: string,
): Target | undefined {
  const endpoint = policy.endpoints.get(endpointNameOf(name))
  if (endpoint === undefined || endpoint.type !== 'subject') return endpoint?.name === name ? endpoint : undefined
  const unconfirmed = confirmHashOf(name)
  if (unconfirmed === undefined) return targetsOf(endpoint, policy, subject).find((one) => one.name === name)
  const pending = ownAlertsOf(policy, subject)?.pending.find(
    (one) => !one.isRemoved && confirmHash(one) === unconfirmed,
  )
  return pending && { ...endpoint, name, type: 'email', to: [pending.email] }
}
