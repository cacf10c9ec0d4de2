import { createHash } from 'node:crypto'

/** How many subjects of each kind there are. Those with a quota are used up, one after another. */
export const subjectCounts = { wide: 128, narrow: 8, quota: 400, settled: 4, held: 6, metered: 4 } as const
type SubjectKind = keyof typeof subjectCounts

/** Units a day of a subject with a quota; its alerts are raised at 80% and at 100%. */
export const quotaSize = 50
/** Tokens a day of a subject that holds. */
export const tokensSize = 1_000_000_000

export const subjectId = (kind: SubjectKind, index: number): string => `${kind}-${index % subjectCounts[kind]}`

/** The key that such a subject sends. */
export const keyOf = (subject: string): string => `weir_failure_${subject}_0123456789abcdef`

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

/** Each of an application that leases. */
export const leasedSubjects = ['leased-0', 'leased-1']

/** Trees: companies with teams, and those who call below the teams. */
const [companies, teams] = [2, 4]
const treeSubjects = [
  ...Array.from({ length: companies }, (_, index) => `  company-${index}: { plan: company }`),
  ...Array.from(
    { length: teams },
    (_, index) => `  team-${index}: { plan: team, parent: company-${index % companies} }`,
  ),
  ...leasedSubjects.map((subject) => `  ${subject}: { plan: leased }`),
]
/** Whom a subject of these kinds is below. */
const parentOf = (kind: string, index: number) =>
  ['wide', 'held', 'metered'].includes(kind) ? `, parent: team-${index % teams}` : ''

const heldLimits = `
  team-day: { algorithm: fixed_window, size: 1000000000, period: day, onUnavailable: allow }
  company-day: { algorithm: fixed_window, size: 1000000000, period: day, onUnavailable: allow }
  company-tokens: { algorithm: fixed_window, size: ${tokensSize}, period: day, unit: tokens, onUnavailable: allow }
  tokens-day: { algorithm: fixed_window, size: ${tokensSize}, period: day, unit: tokens, onUnavailable: allow }
  in-flight: { algorithm: concurrency, size: 1000, onUnavailable: allow }
  bytes-day: { algorithm: fixed_window, size: 1000000000, period: day, unit: bytes, onUnavailable: allow }`
const heldPlans = `
  company: { limits: [company-day, company-tokens] }
  team: { limits: [team-day] }
  held: { limits: [wide-day, tokens-day, in-flight] }
  metered: { limits: [wide-day, bytes-day] }
  leased: { limits: [wide-day], clientLease: 2s }`
/** An answer of the demo's is smaller than what is held for it. */
const metered = `
meters:
  sized: { units: { bytes: { before: 2000, after: bytes_out } } }
routes:
  - { match: "GET /metered", meter: sized }`
const withoutHolds = ['wide', 'narrow', 'quota', 'settled']

/**
 * Subjects that are never refused, subjects that mostly are, and subjects whose quota is used up and alerts. Behind an
 * unavailable Redis all are admitted. Equal requests of a second share records, but for `coalesce: false`, of older
 * releases and for plans that settle. With holds there are subjects that hold tokens and slots, or whose answers are
 * metered, too, and all but those with quotas are below teams of companies; and such as applications lease for. Older
 * releases know none of them.
 */
export function failurePolicy({ withHolds = false, coalesce = true } = {}): string {
  const sharing = coalesce ? ', coalesce: 1s' : ''
  const kinds = Object.entries(subjectCounts).filter(([kind]) => withHolds || withoutHolds.includes(kind))
  const subjects = kinds.flatMap(([kind, count]) =>
    Array.from({ length: count }, (_, index) => {
      const subject = `${kind}-${index}`
      const below = withHolds ? parentOf(kind, index) : ''
      // Every fourth, so that the journal still has segments to delete.
      const plan = kind === 'wide' && index % 4 === 0 ? 'alike' : kind
      return `  ${subject}: { plan: ${plan}${below}, keys: [{ sha256: "${sha256(keyOf(subject))}" }] }`
    }),
  )
  return `version: 1
plans:
  wide: { limits: [wide-minute, wide-day] }
  alike: { limits: [wide-minute, wide-day]${sharing} }
  narrow: { limits: [narrow-second] }
  quota: { limits: [quota-day]${sharing} }
  settled: { limits: [wide-day] }${withHolds ? heldPlans : ''}
limits:
  wide-minute: { algorithm: token_bucket, size: 1000000, window: 1m, onUnavailable: allow }
  wide-day: { algorithm: fixed_window, size: 1000000000, period: day, onUnavailable: allow }
  narrow-second: { algorithm: fixed_window, size: 10, window: 1s, onUnavailable: allow }
  quota-day: { algorithm: fixed_window, size: ${quotaSize}, period: day, thresholds: [80%, 100%], onUnavailable: allow }${withHolds ? heldLimits + metered : ''}
upstreams:
  demo: { url: "http://127.0.0.1:8070", hosts: ["*"] }
endpoints:
  demo: { url: "http://127.0.0.1:8071/", secretEnv: WEIR_DEMO_WEBHOOK_SECRET, allowPrivate: true }
subjects:
${[...(withHolds ? treeSubjects : []), ...subjects].join('\n')}
`
}
