import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import { describeAlert } from '@weir/contracts/describe-alert.ts'
import type { EmailEndpoint } from '@weir/policy/policy.ts'
import { fillTemplate } from '@weir/policy/template.ts'
import { type AlertTemplates, mailForm, templateValues } from './alert-templates.ts'
import type { UnsubscribeUrl } from './unsubscribe-url.ts'

/** Where the words of mail come from. */
export interface MailSources {
  readonly templates: Pick<AlertTemplates, 'find'>
  readonly unsubscribeUrl: UnsubscribeUrl
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
function ownBodies(endpoint: EmailEndpoint, alert: AlertV1, unsubscribe: string, templates: MailSources['templates']) {
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

/** Builds what a mail about an alert says; one to a contact is unsubscribed from by one click (RFC 8058). */
export function mailOf(endpoint: EmailEndpoint, alert: AlertV1, { templates, unsubscribeUrl }: MailSources) {
  const url = unsubscribeUrl(endpoint, alert)
  const oneClick = { 'List-Unsubscribe': `<${url}>`, 'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click' }
  return {
    ...(ownBodies(endpoint, alert, url, templates) ?? weirsBodies(alert, url)),
    headers: { 'Auto-Submitted': 'auto-generated', ...(url === '' ? {} : oneClick) },
  }
}
