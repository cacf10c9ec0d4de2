import type { JwtIssuer } from '../policy.ts'
import { parseHttpUrl, urlSchema } from '../policy-values.ts'
import type { PolicyReader, SourcePosition } from './policy-reader.ts'
import { type Plans, planName, planOf } from './read-plans.ts'
import * as t from './value-types.ts'

/** Issuers: the keys of each are fetched and kept, and few APIs have callers from more. */
const issuersMax = 16

/** Only asymmetric ones: with a shared secret, every party that can check a token can make one. */
const rsa = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'] as const
const algorithms = [...rsa, 'ES256', 'ES384', 'ES512', 'EdDSA'] as const
const algorithm = t.oneOf(algorithms)

/** An algorithm; for symmetric ones and `none`, the problem says why they are not accepted. */
const signing = {
  schema: algorithm.schema,
  read(reader: PolicyReader, at: SourcePosition) {
    const written = reader.scalar(at)
    if (typeof written !== 'string' || !/^(?:none|HS\d+)$/i.test(written)) return algorithm.read(reader, at)
    return reader.problem(at, `${written} does not prove who signed the token; use one of ${algorithms.join(', ')}`)
  },
}

const token = (what: string) => t.matching(what, /^[\x21-\x7e]{1,512}$/)
const claim = token('the name of a claim')

const issuer = t.object(
  'an issuer',
  {
    issuer: t.required('The `iss` claim of its tokens.', token('the `iss` of its tokens, as they have it')),
    jwksUrl: t.required(
      'URL of its public keys.',
      t.secretText('an https URL without credentials and fragment', parseHttpUrl, urlSchema),
    ),
    audience: t.optional('If set, tokens must have this `aud` claim.', token('the `aud` of tokens for this API')),
    algorithms: t.withDefault(
      'Default: [RS256, ES256].',
      t.list('a list such as [RS256, ES256]', signing, {
        min: 1,
        wrongCount: () => 'names no algorithm, so no token could be valid',
        nameOf: String,
      }),
      ['RS256', 'ES256'],
    ),
    subjectClaim: t.withDefault('Claim that names the subject.', claim, 'sub'),
    planClaim: t.optional('Claim that names the plan of subjects that are not in the policy.', claim),
    parentClaim: t.optional('Claim that names the parent of subjects that are not in the policy.', claim),
    plan: t.optional('Plan of subjects that are not in the policy.', planName),
    allowPrivate: t.withDefault('Allows keys at a loopback or private address, and http.', t.boolean, false),
  },
  // Keys come over https; over http only where addresses may be private.
  t.implies({ not: t.has('allowPrivate', true) }, { properties: { jwksUrl: { pattern: '^[Hh][Tt][Tt][Pp][Ss]://' } } }),
)

/** The `jwt` of the section `identity`. */
export const issuerList = t.list('a list of issuers such as [{ issuer: …, jwksUrl: … }]', issuer.found, {
  max: issuersMax,
  wrongCount: (count) => `has ${count} issuers; there are at most ${issuersMax}`,
})

/** Returns the valid issuers. No issuer occurs twice: a token names its issuer and nothing else to choose by. */
export function readIssuers(
  reader: PolicyReader,
  found: NonNullable<ReturnType<typeof issuerList.read>>,
  plans: Plans,
): readonly JwtIssuer[] {
  const seen = new Map<string, SourcePosition>()
  return found.flatMap(({ fields, values }) => {
    const plan = planOf(reader, fields, values, 'plan', plans)
    const {
      issuer: name,
      jwksUrl,
      audience,
      algorithms: names,
      subjectClaim,
      planClaim,
      parentClaim,
      allowPrivate = false,
    } = values
    const [at, urlAt] = [fields.get('issuer'), fields.get('jwksUrl')]
    if (urlAt !== undefined && jwksUrl !== undefined && jwksUrl.protocol !== 'https:' && !allowPrivate) {
      const why = 'over http, another server could impersonate anyone (http requires `allowPrivate: true`)'
      reader.problem(urlAt, `must be https: ${why}`)
    }
    const before = name === undefined ? undefined : seen.get(name)
    if (at !== undefined && before !== undefined) reader.problem(at, `this issuer is also ${reader.where(before)}`)
    else if (at !== undefined && name !== undefined) seen.set(name, at)
    if (name === undefined || jwksUrl === undefined || names === undefined || subjectClaim === undefined) return []
    const settings = { audience, algorithms: names, subjectClaim, planClaim, plan, allowPrivate }
    const below = parentClaim === undefined ? settings : { ...settings, parentClaim }
    return [{ issuer: name, jwksUrl: jwksUrl.href, ...below }]
  })
}
