import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import { describeAlert } from '@weir/contracts/describe-alert.ts'
import { unlinked } from '@weir/core/printable.ts'
import { type LinkPurpose, signAddress } from '@weir/policy/address-token.ts'
import { confirmHashOf, mailHashOf } from '@weir/policy/contact-targets.ts'
import type { EndpointOf } from '@weir/policy/policy.ts'
import { fillTemplate } from '@weir/policy/template.ts'
import { signingKeysOf } from '@weir/runtime/signing-keys.ts'
import { createTransport, type SendMailOptions } from 'nodemailer'
import { mailForm, templateValues } from '../alert-templates.ts'
import { type AttemptResult, type Channel, type ChannelTools, unsent } from './channel.ts'

type Email = EndpointOf<'email'>

/** Time for each step: mail servers, or the queue before them, answer within seconds. */
const stepMs = 15_000
/** Connections: servers limit how many a client may open. */
const connectionsMax = 4

const smtpVariable = 'WEIR_SMTP_URL'

/** Returns the result of a refusal. It is retried like any other: many servers answer 5xx to temporary problems. */
function failureOf(error: unknown): AttemptResult {
  const status = error instanceof Error && 'responseCode' in error ? Number(error.responseCode) : 0
  const message = error instanceof Error ? error.message : String(error)
  return { status: Number.isInteger(status) ? status : 0, error: message, answer: '' }
}

const connect = (url: string) =>
  createTransport({
    url,
    pool: true,
    maxConnections: connectionsMax,
    connectionTimeout: stepMs,
    greetingTimeout: stepMs,
    socketTimeout: stepMs,
    // Nothing of a message is ever read from a file or an address.
    disableFileAccess: true,
    disableUrlAccess: true,
  })

/** Sends mail by the SMTP server that is configured now; without one every attempt fails and says so. */
export function createMailer({ smtpUrl, from }: { readonly smtpUrl: () => string; readonly from: string }) {
  let open: { readonly url: string; readonly transport: ReturnType<typeof connect> } | undefined
  const transportTo = (url: string) => {
    if (open?.url === url) return open.transport
    open?.transport.close()
    open = { url, transport: connect(url) }
    return open.transport
  }
  return {
    async send(mail: SendMailOptions): Promise<AttemptResult> {
      const url = smtpUrl()
      if (url === '') return unsent(`${smtpVariable} is not set`)
      try {
        const { response } = await transportTo(url).sendMail({ from, ...mail })
        return { status: 250, answer: response }
      } catch (error) {
        return failureOf(error)
      }
    },
    close: () => open?.transport.close(),
  }
}

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
const escapeText = (text: string) => text.replace(/[&<>"']/g, (character) => escapes[character] ?? character)

/** Returns the words of a template; without one for the HTML the mail is text alone. */
function ownBodies(endpoint: Email, alert: AlertV1, unsubscribe: string, templates: ChannelTools['templates']) {
  const template = templates.find(endpoint, alert.type, 'txt')
  if (template === undefined) return undefined
  const values = templateValues(alert, undefined, { unsubscribe })
  const [, subject = '', text = ''] = mailForm.exec(fillTemplate(template.text, values)) ?? []
  if (template.html === undefined) return { subject, text }
  const escaped = templateValues(alert, escapeText, { lineBreak: '<br>', unsubscribe })
  return { subject, text, html: fillTemplate(template.html, escaped) }
}

function weirsBodies(alert: AlertV1, unsubscribe: string) {
  const { title, lines } = describeAlert(alert)
  const foot = `${alert.type} ${alert.id}`
  const link = unsubscribe === '' ? '' : `<br><a href="${escapeText(unsubscribe)}">Unsubscribe</a>`
  return {
    subject: title,
    text: [title, '', ...lines, '', foot, ...(unsubscribe === '' ? [] : [`Unsubscribe: ${unsubscribe}`])].join('\n'),
    html: `<p><strong>${escapeText(title)}</strong></p><p>${lines.map(escapeText).join('<br>')}</p><p><small>${escapeText(foot)}${link}</small></p>`,
  }
}

/** Returns the URL of a link for the recipient; empty without a hash, a key or the console's address. */
function linkOf(purpose: LinkPurpose, addressHash: string | undefined, { subject }: AlertV1, tools: ChannelTools) {
  const { unsubscribeKeys, consoleUrl } = tools
  if (addressHash === undefined || consoleUrl === undefined) return ''
  const token = signAddress(signingKeysOf(unsubscribeKeys()), purpose, { subject, addressHash })
  return token === undefined ? '' : new URL(`/${purpose}/${token}`, consoleUrl).href
}

/** The words of a mail with a link to confirm its address. */
function confirmBodies(subject: string, link: string) {
  const title = `Confirm alerts about ${unlinked(subject)}`
  const about =
    'Open this link within a day to get alerts at this address. Ignore this email if you did not request it.'
  return {
    subject: title,
    text: [title, '', about, '', link].join('\n'),
    html: `<p><strong>${escapeText(title)}</strong></p><p>${about}</p><p><a href="${escapeText(link)}">Confirm address</a></p>`,
  }
}

/** Mail; one to a contact is unsubscribed from by one click (RFC 8058). */
export const email: Channel<Email> = {
  verdicts: {},
  addressOf: ({ to }) => to.join(' '),
  findProblem({ name }, environment) {
    if (environment[smtpVariable] || environment[`${smtpVariable}_FILE`]) return undefined
    return `${smtpVariable} (endpoint ${name}) must name the server that sends mail; set it and start again`
  },
  send(endpoint, alert, tools) {
    const confirmHash = confirmHashOf(endpoint.name)
    const confirm = linkOf('confirm', confirmHash, alert, tools)
    if (confirmHash !== undefined && confirm === '') {
      return Promise.resolve(
        unsent('WEIR_CONSOLE_PUBLIC_URL or WEIR_UNSUBSCRIBE_KEY is not set, so no confirmation link can be made'),
      )
    }
    const url = linkOf('unsubscribe', mailHashOf(endpoint.name), alert, tools)
    const messageIdOf = (id: string) => `<${id}.${endpoint.name}@weir>`
    const oneClick = { 'List-Unsubscribe': `<${url}>`, 'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click' }
    return tools.mailer.send({
      to: [...endpoint.to],
      // The same for each attempt: a mailbox that got two shows one.
      messageId: messageIdOf(alert.id),
      ...(alert.type === 'weir.quota.resolved' ? { inReplyTo: messageIdOf(alert.data.resolves) } : {}),
      ...(confirm === ''
        ? (ownBodies(endpoint, alert, url, tools.templates) ?? weirsBodies(alert, url))
        : confirmBodies(alert.subject, confirm)),
      headers: { 'Auto-Submitted': 'auto-generated', ...(url === '' ? {} : oneClick) },
    })
  },
}
