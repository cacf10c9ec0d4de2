import { createHash } from 'node:crypto'
import { parse } from 'yaml'
import { allFences } from './fences.ts'

type Section = readonly { readonly match?: string }[] | Readonly<Record<string, unknown>>
type PolicyFile = Readonly<Record<string, unknown>>

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** A webhook that the demo's receiver of `weir up` verifies. */
const receiver = { url: 'http://127.0.0.1:8071/', secretEnv: 'WEIR_DEMO_WEBHOOK_SECRET', allowPrivate: true }

/** The price list of docs/prices.md, for which that page shows an answer. */
const [{ prices } = { prices: {} }] = allFences
  .filter(({ path, text }) => path === 'docs/prices.md' && text.includes('up_to'))
  .map(({ text }) => parse(text) as { readonly prices: object })

/** All that the documents name in examples: what a fragment of a policy leaves out, and what commands ask about. */
export const documentedPolicy: PolicyFile = {
  version: 1,
  limits: {
    minute: { algorithm: 'fixed_window', size: 100, window: '1m' },
    day: { algorithm: 'fixed_window', size: 5000, period: 'day', thresholds: ['80%', '100%'] },
    month: { algorithm: 'fixed_window', size: 100_000, period: 'month' },
    'trial-day': { algorithm: 'fixed_window', size: 20, period: 'day', thresholds: ['80%', '100%'] },
    otp: { algorithm: 'fixed_window', size: 3, window: '1m', block: '1h', by: ['subject'] },
  },
  prices,
  plans: {
    free: { limits: ['minute', 'day'] },
    trial: { limits: ['minute', 'trial-day'] },
    starter: { limits: [], prices: 'api-2026' },
    otp: { limits: ['otp'] },
  },
  routes: [{ match: 'POST /v1/search', cost: 5 }],
  upstreams: { demo: { url: 'http://127.0.0.1:8070', hosts: ['127.0.0.1'] } },
  endpoints: { demo: receiver, ops: receiver, customers: { type: 'subject' } },
  subjects: {
    demo: { plan: 'free' },
    'demo-small': { plan: 'trial' },
    billed: { plan: 'starter' },
    acme: {
      plan: 'trial',
      prices: 'api-2026',
      contact: { webhook: receiver },
      keys: [{ sha256: sha256('acme-key'), id: 'KEY-ID' }],
    },
    locked: { plan: 'otp', keys: [{ sha256: sha256('locked-key') }] },
    locked2: { plan: 'otp', keys: [{ sha256: sha256('locked2-key') }] },
  },
}

const isList = (section: unknown): section is readonly { readonly match?: string }[] => Array.isArray(section)

/** Of two routes with one pattern, and of two entries with one name, the fragment's. */
function joined(section: Section | undefined, fragment: Section | undefined): unknown {
  if (fragment === undefined) return section
  if (isList(fragment)) {
    const rest = isList(section) ? section : []
    return [...fragment, ...rest.filter(({ match }) => !fragment.some((one) => one.match === match))]
  }
  return { ...section, ...fragment }
}

/** A fragment of weir.yaml with the rest of a policy around it. */
export function completePolicy(fragment: string): PolicyFile {
  const own: PolicyFile = parse(fragment)
  const names = [...new Set([...Object.keys(documentedPolicy), ...Object.keys(own)])]
  return Object.fromEntries(
    names.map((name) => {
      const [around, given] = [documentedPolicy[name], own[name]]
      const isWhole = typeof given !== 'object' && given !== undefined
      return [name, isWhole ? given : joined(around as Section | undefined, given as Section | undefined)]
    }),
  )
}
