import { defaultIdentity, type Identity, type TrustedHeaders } from '../policy.ts'
import { parseCidr } from '../policy-values.ts'
import type { PolicyReader, SourcePosition } from './policy-reader.ts'
import { issuerList, readIssuers } from './read-jwt.ts'
import { type Plans, planName, planOf } from './read-plans.ts'
import * as t from './value-types.ts'

/** Headers in which a key is looked for: each is one more to hash for every unauthenticated request. */
const keyHeadersMax = 8
/** Blocks of one list: every request from a peer may be compared with all of them. */
const cidrsMax = 1_000

/** They frame the message, belong to one hop, or say where it came from: none is a caller's credential. */
const framing = [
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'te',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'forwarded',
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
]
const cookies = ['cookie', 'set-cookie']

/** The name of a header, in lower case, that may say who calls. */
const headerName = t.checked(
  t.matching('the name of a header', /^[\w!#$%&'*+.^`|~-]{1,64}$/),
  (written, reader, at) => {
    const name = written.toLowerCase()
    if (cookies.includes(name)) {
      const why = 'so any website could send requests on behalf of its visitors'
      return reader.problem(at, `browsers send cookies automatically, ${why}`)
    }
    if (framing.includes(name)) return reader.problem(at, `the header ${name} describes the connection, not the caller`)
    return name
  },
  { not: { enum: [...cookies, ...framing] } },
)

/** An address, or a block of them, with its prefix. */
export const cidr = t.checked(
  t.anyText('an address or a network such as 10.0.0.0/8'),
  (written, reader, at) => {
    const parsed = parseCidr(written)
    return parsed.kind === 'wrong' ? reader.problem(at, parsed.why) : parsed.cidr
  },
  { pattern: '^[0-9a-fA-F:.]{2,45}(/[0-9]{1,3})?$' },
)
const cidrList = (min: number) =>
  t.list('a list of addresses such as [127.0.0.1/32, 10.0.0.0/8]', cidr, {
    min,
    max: cidrsMax,
    wrongCount: (count) =>
      count === 0
        ? 'names no address: remove `trustedHeaders` if no peer is trusted'
        : `has ${count} entries; there are at most ${cidrsMax}`,
    nameOf: String,
  })

const trustedHeaders = t.object('trustedHeaders', {
  from: t.required('Addresses of trusted peers.', cidrList(1)),
  subject: t.required('Header that names the subject.', headerName),
  planHeader: t.optional('Header that names the plan.', headerName),
  parentHeader: t.optional('Header that names the parent of subjects that are not in the policy.', headerName),
  plan: t.optional('Plan of subjects that are not in the policy.', planName),
})

const keyHeaders = t.list('a list of header names such as [authorization, x-api-key]', headerName, {
  max: keyHeadersMax,
  wrongCount: (count) => `names ${count} headers; a key is looked for in at most ${keyHeadersMax}`,
  nameOf: String,
})
const parameter = t.matching('a name of 1 to 64 letters, digits, -, _ or .', /^[\w.-]{1,64}$/)

/** The section `identity`. */
export const identity = t.object('identity', {
  keyHeaders: t.orEmpty(
    'Headers that may carry a key, in search order. Default: [authorization, x-api-key].',
    keyHeaders,
  ),
  keyQuery: t.orEmpty('Query parameter that may carry a key. Default: none.', parameter),
  jwt: t.orEmpty("Issuers of callers' tokens.", issuerList),
  trustedHeaders: t.orEmpty(
    'Headers in which trusted proxies name the caller that they authenticated.',
    trustedHeaders.found,
  ),
  trustedProxies: t.orEmpty("Addresses of trusted proxies, which report the caller's address.", cidrList(0)),
  ipv6Prefix: t.withDefault(
    'IPv6 prefix length that identifies one caller: 64, or shorter if a customer has several networks. Default: 64.',
    t.integer(32, 64),
    defaultIdentity.ipv6Prefix,
  ),
  anonymous: t.orEmpty('Plan for callers without a credential. Default: their requests are refused.', planName),
  unknown: t.orEmpty(
    'Plan for subjects that are not in the policy, when a token names them in the check API or over gRPC. Default: their requests are refused.',
    planName,
  ),
})

/** Reads how callers are identified; a wrong value is a problem, and the default is returned for it. */
export function readIdentity(reader: PolicyReader, at: SourcePosition, plans: Plans): Identity {
  const found = identity.find(reader, at)
  if (found === undefined) return defaultIdentity
  const { fields, values } = found
  const headers = values.keyHeaders ?? defaultIdentity.keyHeaders
  return {
    keyHeaders: headers,
    keyQuery: values.keyQuery,
    jwt: values.jwt === undefined ? [] : readIssuers(reader, values.jwt, plans),
    trustedHeaders:
      values.trustedHeaders === undefined ? undefined : readTrusted(reader, values.trustedHeaders, plans, headers),
    trustedProxies: values.trustedProxies ?? [],
    ipv6Prefix: values.ipv6Prefix ?? defaultIdentity.ipv6Prefix,
    anonymousPlan: planOf(reader, fields, values, 'anonymous', plans),
    unknownPlan: planOf(reader, fields, values, 'unknown', plans),
  }
}

function readTrusted(
  reader: PolicyReader,
  { fields, values }: t.FoundObject<typeof trustedHeaders.members>,
  plans: Plans,
  keys: readonly string[],
): TrustedHeaders | undefined {
  const { from, subject, planHeader, parentHeader } = values
  const plan = planOf(reader, fields, values, 'plan', plans)
  for (const key of ['subject', 'planHeader', 'parentHeader'] as const) {
    const [at, name] = [fields.get(key), values[key]]
    if (at === undefined || name === undefined || !keys.includes(name)) continue
    reader.problem(at, `${name} already carries a key; a header can have only one meaning`)
  }
  const meanings = new Map([[subject, 'subject']])
  for (const [key, what] of [
    ['planHeader', 'plan'],
    ['parentHeader', 'parent'],
  ] as const) {
    const [at, name] = [fields.get(key), values[key]]
    if (at === undefined || name === undefined) continue
    const other = meanings.get(name)
    if (other !== undefined)
      reader.problem(at, `${name} already names the ${other}; a header can have only one meaning`)
    meanings.set(name, what)
  }
  if (from === undefined || subject === undefined) return undefined
  const trusted = { from, subject, planHeader, plan }
  return parentHeader === undefined ? trusted : { ...trusted, parentHeader }
}
