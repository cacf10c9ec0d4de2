import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import type { EmailEndpoint } from '@weir/policy/policy.ts'
import { fillTemplate } from '@weir/policy/template.ts'
import { createTransport } from 'nodemailer'
import { type AlertTemplates, mailForm, templateValues } from './alert-templates.ts'
import type { AttemptResult } from './deliver-alert.ts'
import { describeAlert } from './describe-alert.ts'

/** Time for each step: mail servers, or the queue before them, answer within seconds. */
const stepMs = 15_000
/** Connections: servers limit how many a client may open. */
const connectionsMax = 4

const escapes: Readonly<Record<string, string>> = {
  ...{ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' },
}
const escapeText = (text: string) => text.replace(/[&<>"']/g, (character) => escapes[character] ?? character)

type Templates = Pick<AlertTemplates, 'find'>

/** Returns the words of a template; without one for the HTML the mail is text alone. */
function ownBodiesOf(endpoint: EmailEndpoint, alert: AlertV1, templates: Templates) {
  const template = templates.find(endpoint, alert.type, 'txt')
  if (template === undefined) return undefined
  const [, subject = '', text = ''] = mailForm.exec(fillTemplate(template.text, templateValues(alert))) ?? []
  if (template.html === undefined) return { subject, text }
  return { subject, text, html: fillTemplate(template.html, templateValues(alert, escapeText, '<br>')) }
}

function bodiesOf(endpoint: EmailEndpoint, alert: AlertV1, templates: Templates) {
  const own = ownBodiesOf(endpoint, alert, templates)
  if (own !== undefined) return own
  const { title, lines } = describeAlert(alert)
  const foot = `${alert.type} ${alert.id}`
  return {
    subject: title,
    text: [title, '', ...lines, '', foot].join('\n'),
    html: `<p><strong>${escapeText(title)}</strong></p><p>${lines.map(escapeText).join('<br>')}</p><p><small>${escapeText(foot)}</small></p>`,
  }
}

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

/** Opens the sender of mail, by the SMTP server that is configured now; without one every attempt fails and says so. */
export function createEmailSender(options: {
  readonly smtpUrl: () => string
  readonly from: string
  readonly templates: Templates
}) {
  const { smtpUrl, from, templates } = options
  let open: { readonly url: string; readonly transport: ReturnType<typeof connect> } | undefined
  const transportTo = (url: string) => {
    if (open?.url === url) return open.transport
    open?.transport.close()
    open = { url, transport: connect(url) }
    return open.transport
  }
  return {
    async send(endpoint: EmailEndpoint, alert: AlertV1): Promise<AttemptResult> {
      const url = smtpUrl()
      if (url === '') return { status: 0, error: 'WEIR_SMTP_URL is not set', answer: '' }
      try {
        const { response } = await transportTo(url).sendMail({
          from,
          to: [...endpoint.to],
          // The same for each attempt: a mailbox that got two shows one.
          messageId: `<${alert.id}.${endpoint.name}@weir>`,
          headers: { 'Auto-Submitted': 'auto-generated' },
          ...bodiesOf(endpoint, alert, templates),
        })
        return { status: 250, answer: response }
      } catch (error) {
        return failureOf(error)
      }
    },
    close: () => open?.transport.close(),
  }
}
