import type { JwtIssuer, Plan } from '../policy.ts'
import { parseHttpUrl } from '../policy-values.ts'
import type { Field, Place, PolicyReader } from './policy-reader.ts'
import { readPlanName } from './read-plan-name.ts'

/** Issuers: the keys of each are fetched and kept, and few APIs have callers from more. */
const issuersMax = 16

/** Only asymmetric ones: with a shared secret whoever can check a token can make one. */
const jwtAlgorithms = [
  ...(['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'] as const),
  ...(['ES256', 'ES384', 'ES512', 'EdDSA'] as const),
] as const
const defaultAlgorithms = ['RS256', 'ES256']

const issuerKeys = [
  ...['issuer', 'jwksUrl', 'audience', 'algorithms', 'subjectClaim', 'planClaim', 'plan', 'allowPrivate'],
]

type Plans = ReadonlyMap<string, Plan | undefined>

/** Those that are right. No issuer stands twice: a token names its issuer and nothing else to choose by. */
export function readJwtIssuers(reader: PolicyReader, field: Field, plans: Plans): readonly JwtIssuer[] {
  const items = reader.list(field, 'a list of issuers such as [{ issuer: …, jwksUrl: … }]') ?? []
  if (items.length > issuersMax) reader.problem(field, `has ${items.length} issuers; there are at most ${issuersMax}`)
  const issuers: JwtIssuer[] = []
  const seen = new Map<string, Place>()
  for (const item of items.slice(0, issuersMax)) {
    const fields = reader.fields(item, 'an issuer', issuerKeys, ['issuer', 'jwksUrl'])
    if (fields === undefined) continue
    const issuer = readIssuer(reader, fields, plans)
    const at = fields.get('issuer')
    const before = issuer === undefined ? undefined : seen.get(issuer.issuer)
    if (issuer === undefined || at === undefined) continue
    if (before === undefined) seen.set(issuer.issuer, at)
    else reader.problem(at, `the same issuer is on line ${reader.lineOf(before)}`)
    issuers.push(issuer)
  }
  return issuers
}

function readIssuer(reader: PolicyReader, fields: ReadonlyMap<string, Field>, plans: Plans): JwtIssuer | undefined {
  const read = <T>(name: string, of: (field: Field) => T | undefined, otherwise: T): T | undefined => {
    const field = fields.get(name)
    return field === undefined ? otherwise : of(field)
  }
  const token = (what: string) => (at: Field) => reader.text(at, what, parseToken)
  const claim = token('the name of a claim')
  const issuer = read<string | undefined>('issuer', token('the `iss` of its tokens, as they have it'), undefined)
  const audience = read<string | undefined>('audience', token('the `aud` of tokens for this API'), undefined)
  const algorithms = read('algorithms', (at) => readAlgorithms(reader, at), defaultAlgorithms)
  const subjectClaim = read('subjectClaim', claim, 'sub')
  const planClaim = read<string | undefined>('planClaim', claim, undefined)
  const plan = read<Plan | undefined>('plan', (at) => readPlanName(reader, at, plans), undefined)
  const allowPrivate = read('allowPrivate', (at) => reader.boolean(at), false)
  const jwksUrl = read<string | undefined>('jwksUrl', (at) => readJwksUrl(reader, at, allowPrivate ?? false), undefined)
  if (issuer === undefined || jwksUrl === undefined || algorithms === undefined) return undefined
  if (subjectClaim === undefined || allowPrivate === undefined) return undefined
  return { issuer, jwksUrl, audience, algorithms, subjectClaim, planClaim, plan, allowPrivate }
}

const parseToken = (text: string) => (/^[\x21-\x7e]{1,512}$/.test(text) ? text : undefined)

function readJwksUrl(reader: PolicyReader, field: Field, allowPrivate: boolean): string | undefined {
  const what = 'an https URL without credentials and fragment'
  const url = reader.secretText(field, what, parseHttpUrl)
  if (url === undefined || url.protocol === 'https:' || allowPrivate) return url?.href
  return reader.problem(
    field,
    'must be https: whoever can answer in its place could sign as anybody (http only with `allowPrivate: true`)',
  )
}

function readAlgorithms(reader: PolicyReader, field: Field): readonly string[] | undefined {
  const items = reader.list(field, 'a list such as [RS256, ES256]')
  if (items === undefined) return undefined
  if (items.length === 0) return reader.problem(field, 'names no algorithm: no token could be right')
  const names = new Set<string>()
  for (const item of items) {
    const written = reader.scalar(item)
    if (typeof written === 'string' && /^(?:none|HS\d+)$/i.test(written)) {
      reader.problem(item, `${written} does not show who has signed; take one of ${jwtAlgorithms.join(', ')}`)
      continue
    }
    const name = reader.oneOf(item, jwtAlgorithms)
    if (name === undefined) continue
    if (names.has(name)) reader.problem(item, `${name} is named twice`)
    names.add(name)
  }
  return [...names]
}
