import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { type AlertV1, alertFields } from '@weir/contracts/alert.v1.ts'
import { describeAlert, digestLines } from '@weir/contracts/describe-alert.ts'
import { type AlertType, alertTypes } from '@weir/core/alerts/alert-types.ts'
import type { Clock } from '@weir/core/clock.ts'
import type { Policy } from '@weir/policy/policy.ts'
import { namesInTemplate } from '@weir/policy/template.ts'
import { readSmallFile } from '@weir/runtime/read-small-file.ts'

/** Files of a folder: some twenty types of alerts, three kinds each, and what editors leave behind. */
const filesMax = 1_000
/** A mail of more words is cut by mail programs (Gmail: 102 kB). */
const lengthMax = 64 * 1024
/** An edited file is used after this time; alerts come by thousands, and files change by hand. */
const keptMs = 10_000

const plainNames = ['id', 'type', 'time', 'subject', 'subject_in_url', 'title', 'lines', 'alerts', 'unsubscribe']
/** Fields of alerts' data, of all types. */
const dataNames = [...new Set(Object.values(alertFields).flatMap((fields) => Object.keys(fields)))]
const names = [...plainNames, ...dataNames]
const kinds = ['txt', 'html', 'slack']

/** The text of a mail: its subject in the first line, then the body, with or without an empty line between them. */
export const mailForm = /^Subject: ([^\r\n]+)\r?\n(?:\r?\n)?([\s\S]*)$/

/**
 * Returns what an alert has for each name of a template, empty for what it does not have. `escapeText` is for the
 * markup of the template, whose words are the operator's own and stay as they are.
 */
export function templateValues(
  alert: AlertV1,
  escapeText: (text: string) => string = (text) => text,
  { lineBreak = '\n', unsubscribe = '' }: { readonly lineBreak?: string; readonly unsubscribe?: string } = {},
): Readonly<Record<string, string>> {
  const { id, type, time, subject } = alert
  const { title, lines } = describeAlert(alert)
  const data: Readonly<Record<string, unknown>> = { ...alert.data }
  const ofData = dataNames.map((name) => [name, String(data[name] ?? '')] as const)
  const plain = { id, type, time, subject, subject_in_url: encodeURIComponent(subject), title, unsubscribe }
  const values = [...Object.entries(plain), ...ofData].map(([name, value]) => [name, escapeText(value)] as const)
  const joined = (some: readonly string[]) => some.map(escapeText).join(lineBreak)
  const alerts = alert.type === 'weir.alerts.digest' ? digestLines(alert) : []
  return { ...Object.fromEntries(values), lines: joined(lines), alerts: joined(alerts) }
}

/** Returns whether a name is `TYPE.KIND`, where TYPE may be `default`. */
function isTemplateName(file: string): boolean {
  const [, stem = '', kind = ''] = /^(.+)\.([a-z]+)$/.exec(file) ?? []
  return kinds.includes(kind) && [...alertTypes, 'default'].includes(stem)
}

/** Returns why a text is no template; undefined if it is one. */
function problemOf(file: string, text: string): string | undefined {
  if (text.length > lengthMax) return `has ${text.length} characters; a template can have at most ${lengthMax}`
  const unknown = namesInTemplate(text).find((name) => !names.includes(name))
  if (unknown !== undefined) return `names {{${unknown.slice(0, 40)}}}; a template may contain ${names.join(', ')}`
  if (file.endsWith('.txt') && !mailForm.test(text)) return 'must begin with a subject line, such as Subject: {{title}}'
  return undefined
}

interface Folder {
  readonly files: ReadonlyMap<string, string>
  readonly problems: readonly string[]
}

function readFolder(folder: string): Folder {
  const files = new Map<string, string>()
  const problems: string[] = []
  try {
    const found = readdirSync(folder).filter((file) => !file.startsWith('.'))
    if (found.length > filesMax) problems.push(`${folder} has ${found.length} files; only ${filesMax} are read`)
    for (const file of found.sort().slice(0, filesMax)) {
      const text = isTemplateName(file) ? readSmallFile(join(folder, file)) : undefined
      const problem = text === undefined ? `must be called TYPE.${kinds.join('|')}` : problemOf(file, text)
      if (problem !== undefined) problems.push(`${join(folder, file)} ${problem}`)
      else if (text !== undefined) files.set(file, text)
    }
  } catch (error) {
    problems.push(`${folder} cannot be read (${(error as Error).message})`)
  }
  return { files, problems }
}

/** The words of alerts, as they are in files now. */
export type AlertTemplates = ReturnType<typeof createAlertTemplates>

/**
 * Reads the templates of endpoints: folders of `dir`. A file that is wrong is not used, and the alert is sent in the
 * next best words: it never waits for words.
 */
export function createAlertTemplates(options: {
  /** Empty for none. */
  readonly dir: string
  readonly policyInForce: () => Pick<Policy, 'endpoints'>
  readonly clock: Clock
}) {
  const { dir, policyInForce, clock } = options
  const folders = new Map<string, Folder & { readonly readMs: number }>()
  const folderOf = (name: string): Folder => {
    const known = folders.get(name)
    if (known !== undefined && clock.nowMs() - known.readMs < keptMs) return known
    const read = { ...readFolder(join(dir, name)), readMs: clock.nowMs() }
    folders.set(name, read)
    return read
  }
  const findProblems = (): readonly string[] => {
    const wanted = [...policyInForce().endpoints.values()].flatMap((one) =>
      'templates' in one && one.templates !== undefined ? [one.templates] : [],
    )
    // Folders that the policy no longer names leave.
    for (const name of folders.keys()) if (!wanted.includes(name)) folders.delete(name)
    if (dir !== '') return [...new Set(wanted)].flatMap((name) => folderOf(name).problems)
    return wanted.length > 0 ? ['WEIR_TEMPLATES_DIR is not set, but some endpoints use templates'] : []
  }
  return {
    /**
     * Returns the template of the type, or the default; undefined for Weir's own words. `html` is what stands next to
     * it for the HTML of a mail.
     */
    find(
      { templates }: { readonly templates?: string | undefined },
      type: AlertType,
      kind: 'txt' | 'slack',
    ): { readonly text: string; readonly html: string | undefined } | undefined {
      if (templates === undefined || dir === '') return undefined
      const { files } = folderOf(templates)
      for (const stem of [type, 'default']) {
        const text = files.get(`${stem}.${kind}`)
        if (text !== undefined) return { text, html: files.get(`${stem}.html`) }
      }
      return undefined
    },
    /** Returns a sentence for each template that cannot be used. */
    findProblems,
  }
}
