import { showUnsubscribe, unsubscribe } from '@weir/api/access.ts'
import { addressesOf } from '@weir/policy/contact-targets.ts'
import { putEntity } from '@weir/policy/entities.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import { type Unsubscription, verifyUnsubscription } from '@weir/policy/unsubscribe-token.ts'
import type { ChangePlan, PolicyChanger } from '@weir/policy-changes/change-policy.ts'
import { signingKeysOf } from '@weir/runtime/signing-keys.ts'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { type Handler, serve } from '../http/serve.ts'
import type { Sources } from '../sources.ts'

/** What a mail program posts has 26 bytes, as a form some more. Nothing of it is read. */
const bodyBytesMax = 4_096
/** Who made the change, in the audit. */
const author = 'unsubscribe'

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

/** Makes the policy say that an address gets no mail. An address that the contact does not have needs no entry. */
function planUnsubscribe(state: PolicyState, { subject, addressHash }: Unsubscription): ChangePlan<undefined> {
  const { contacts, unsubscribed } = state.policy
  const before = unsubscribed.get(subject) ?? []
  const isOfContact = addressesOf(contacts.get(subject)).some((one) => one.hash === addressHash)
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

/**
 * `/unsubscribe/TOKEN`, which mails to contacts name: a page with a button, and what the button and mail programs (RFC
 * 8058, one click) post to it. It needs no other credential than the token, and GET changes nothing: programs that look
 * for malware follow every link of a mail.
 */
export function registerUnsubscribe(app: FastifyInstance, sources: Sources, changer: PolicyChanger): void {
  const read = (token: string) => verifyUnsubscription(signingKeysOf(sources.access.unsubscribeKey()), token)
  const unknown = (reply: FastifyReply) =>
    send(reply, 404, 'Unknown link', '<p>Use the link of the mail as a whole, or ask who sent it.</p>')
  app.register(async (pages) => {
    pages.removeAllContentTypeParsers()
    pages.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: bodyBytesMax }, (_request, _body, done) =>
      done(null),
    )

    serve(pages, showUnsubscribe, async ({ params: { token } }, reply) => {
      const found = read(token)
      if (found === undefined) return unknown(reply)
      const about = `<p>This address gets no more mail about ${escapeText(found.subject)}.</p>`
      return send(reply, 200, 'Unsubscribe', `${about}<form method="post"><button>Unsubscribe</button></form>`)
    })

    const unsubscribing: Handler<typeof unsubscribe> = async ({ params: { token }, log }, reply) => {
      const found = read(token)
      if (found === undefined) return unknown(reply)
      const changed = await changer.change(author, (state) => planUnsubscribe(state, found))
      if (changed.kind === 'problem') {
        log.error({ problem: changed.problem, subject: found.subject }, 'an address was not unsubscribed')
        return send(reply, 503, 'Not unsubscribed', '<p>Try again later, or ask who sent the mail.</p>')
      }
      return send(reply, 200, 'Unsubscribed', `<p>No more mail about ${escapeText(found.subject)}.</p>`)
    }
    serve(pages, unsubscribe, unsubscribing, { bodyLimit: bodyBytesMax })
  })
}
