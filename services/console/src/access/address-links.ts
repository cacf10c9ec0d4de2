import { confirmAddress, showConfirm, showUnsubscribe, unsubscribe } from '@weir/api/access.ts'
import { type AddressClaim, type LinkPurpose, verifyAddress } from '@weir/policy/address-token.ts'
import { addressesOf, confirmHash, ownAlertsOf } from '@weir/policy/contact-targets.ts'
import { putEntity } from '@weir/policy/entities.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import type { ChangePlan, PolicyChanger } from '@weir/policy-changes/change-policy.ts'
import { signingKeysOf } from '@weir/runtime/signing-keys.ts'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { type Handler, serve } from '../http/serve.ts'
import type { Sources } from '../sources.ts'
import { isAlive, planOwnAlerts } from './own-alerts.ts'

/** What a mail program posts has 26 bytes, as a form some more. Nothing of it is read. */
const bodyBytesMax = 4_096

const headers = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-robots-tag': 'noindex',
}

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const escapeText = (text: string) => text.replace(/[&<>"]/g, (character) => escapes[character] ?? character)

const send = (reply: FastifyReply, status: number, title: string, more: string) =>
  reply
    .code(status)
    .headers(headers)
    .send(`<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title><h1>${title}</h1>${more}</html>`)

/** Makes the policy say that an address gets no mail. An address that no contact has needs no entry. */
function planUnsubscribe(state: PolicyState, { subject, addressHash }: AddressClaim): ChangePlan<undefined> {
  const before = state.policy.unsubscribed.get(subject) ?? []
  const isOfContact = addressesOf(state.policy, subject).some((one) => one.hash === addressHash)
  if (before.includes(addressHash) || !isOfContact) return { kind: 'nothing', answer: undefined }
  const origin = state.get('unsubscribed', subject)?.origin ?? 'admin'
  const body = { email: [...before, addressHash] }
  return {
    kind: 'change',
    changes: [putEntity({ kind: 'unsubscribed', name: subject, origin, position: undefined, body })],
    lines: [{ what: 'put', kind: 'unsubscribed', name: subject }],
    answer: undefined,
  }
}

/** The address that waits for this very link. */
const awaited = ({ policy }: PolicyState, { subject, addressHash }: AddressClaim, nowMs: number) =>
  ownAlertsOf(policy, subject)?.pending.find(
    (one) => isAlive(one, nowMs) && !one.isRemoved && confirmHash(one) === addressHash,
  )

/** Moves an address that waits for its link to those that are confirmed. */
function planConfirm(state: PolicyState, claim: AddressClaim, nowMs: number): ChangePlan<undefined> {
  const own = state.policy.ownAlerts.get(claim.subject)
  const found = awaited(state, claim, nowMs)
  if (own === undefined || found === undefined) return { kind: 'nothing', answer: undefined }
  const pending = own.pending.filter((one) => one !== found)
  return planOwnAlerts(state, claim.subject, { ...own, email: [...own.email, found.email], pending }, undefined)
}

/** What a link of a mail does. */
interface Link {
  readonly purpose: LinkPurpose
  readonly show: typeof showUnsubscribe
  readonly act: typeof unsubscribe
  /** Title of the page, and label of its button. */
  readonly title: string
  readonly about: (subject: string) => string
  readonly done: readonly [title: string, about: (subject: string) => string]
  readonly isKnown: (state: PolicyState, claim: AddressClaim, nowMs: number) => boolean
  readonly plan: (state: PolicyState, claim: AddressClaim, nowMs: number) => ChangePlan<undefined>
}

const links: readonly Link[] = [
  {
    purpose: 'unsubscribe',
    show: showUnsubscribe,
    act: unsubscribe,
    title: 'Unsubscribe',
    about: (subject) => `Stop alerts about ${subject} to this address.`,
    done: ['Unsubscribed', (subject) => `This address gets no more alerts about ${subject}.`],
    isKnown: () => true,
    plan: planUnsubscribe,
  },
  {
    purpose: 'confirm',
    show: showConfirm,
    act: confirmAddress,
    title: 'Confirm address',
    about: (subject) => `Send alerts about ${subject} to this address.`,
    done: [
      'Confirmed',
      (subject) => `This address gets alerts about ${subject}. Every mail has a link to unsubscribe.`,
    ],
    isKnown: (...claimed) => awaited(...claimed) !== undefined,
    plan: planConfirm,
  },
]

/**
 * `/unsubscribe/TOKEN` and `/confirm/TOKEN`, which mails name: a page with a button, and what the button and mail
 * programs (RFC 8058, one click) post to it. It needs no other credential than the token, and GET changes nothing:
 * programs that look for malware follow every link of a mail.
 */
export function registerAddressLinks(app: FastifyInstance, sources: Sources, changer: PolicyChanger): void {
  const { access, clock, policy } = sources
  const unknown = (reply: FastifyReply) =>
    send(reply, 404, 'Link not found', '<p>The link is incomplete, expired, or was used already.</p>')
  app.register(async (pages) => {
    pages.removeAllContentTypeParsers()
    pages.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: bodyBytesMax }, (_request, _body, done) =>
      done(null),
    )
    for (const { purpose, show, act, title, about, done, isKnown, plan } of links) {
      const read = (token: string) => {
        const found = verifyAddress(signingKeysOf(access.unsubscribeKey()), purpose, token)
        const { state } = policy
        return found !== undefined && state !== undefined && isKnown(state, found, clock.nowMs()) ? found : undefined
      }
      serve(pages, show, async ({ params: { token } }, reply) => {
        const found = read(token)
        if (found === undefined) return unknown(reply)
        const words = `<p>${escapeText(about(found.subject))}</p>`
        return send(reply, 200, title, `${words}<form method="post"><button>${title}</button></form>`)
      })

      const acting: Handler<typeof act> = async ({ params: { token }, log }, reply) => {
        const found = read(token)
        if (found === undefined) return unknown(reply)
        const changed = await changer.change(purpose, (state) => plan(state, found, clock.nowMs()))
        if (changed.kind === 'problem') {
          log.error(
            { problem: changed.problem, subject: found.subject, purpose },
            'a link from a mail could not be used',
          )
          return send(reply, 503, 'Try again later', '<p>Nothing was changed. Try again, or ask the sender.</p>')
        }
        return send(reply, 200, done[0], `<p>${escapeText(done[1](found.subject))}</p>`)
      }
      serve(pages, act, acting, { bodyLimit: bodyBytesMax })
    }
  })
}
