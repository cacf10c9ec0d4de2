import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import type { EmailEndpoint } from '@weir/policy/policy.ts'
import { createTransport } from 'nodemailer'
import type { AttemptResult } from './deliver-alert.ts'
import { type MailSources, mailOf } from './mail-words.ts'

/** Time for each step: mail servers, or the queue before them, answer within seconds. */
const stepMs = 15_000
/** Connections: servers limit how many a client may open. */
const connectionsMax = 4

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
  readonly words: MailSources
}) {
  const { smtpUrl, from, words } = options
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
          ...mailOf(endpoint, alert, words),
        })
        return { status: 250, answer: response }
      } catch (error) {
        return failureOf(error)
      }
    },
    close: () => open?.transport.close(),
  }
}
