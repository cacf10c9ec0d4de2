import { defaultIdentity, type Identity, type Plan, type TrustedHeaders } from '../policy.ts'
import { parseCidr } from './parse-cidr.ts'
import type { Field, Place, PolicyReader } from './policy-reader.ts'
import { readHeaderName } from './read-header-name.ts'
import { readJwtIssuers } from './read-jwt.ts'
import { readPlanName } from './read-plan-name.ts'

/** Headers looked at for a key: each is one more to hash for every stranger. */
const keyHeadersMax = 8
/** Blocks of one list: every request from a peer may be held against all of them. */
const cidrsMax = 1_000

type Plans = ReadonlyMap<string, Plan | undefined>

const identityKeys = ['keyHeaders', 'keyQuery', 'jwt', 'trustedHeaders', 'trustedProxies', 'anonymous', 'unknown']

/** How callers are told apart; what is wrong in it falls back to the default, beside its problem. */
export function readIdentity(reader: PolicyReader, place: Place, plans: Plans): Identity {
  const fields = reader.fields(place, 'identity', identityKeys, [])
  if (fields === undefined) return defaultIdentity
  const read = <T>(name: string, of: (field: Field) => T | undefined): T | undefined => {
    const field = fields.get(name)
    return field === undefined || reader.isEmpty(field) ? undefined : of(field)
  }
  const keyHeaders = read('keyHeaders', (at) => readKeyHeaders(reader, at)) ?? defaultIdentity.keyHeaders
  const jwt = read('jwt', (at) => readJwtIssuers(reader, at, plans)) ?? []
  const trustedHeaders = read('trustedHeaders', (at) => readTrustedHeaders(reader, at, plans, keyHeaders))
  return {
    keyHeaders,
    keyQuery: read('keyQuery', (at) => reader.text(at, 'a name of 1 to 64 letters, digits, -, _ or .', parseParameter)),
    jwt,
    trustedHeaders,
    trustedProxies: read('trustedProxies', (at) => readCidrs(reader, at)) ?? [],
    anonymousPlan: read('anonymous', (at) => readPlanName(reader, at, plans)),
    unknownPlan: read('unknown', (at) => readPlanName(reader, at, plans)),
  }
}

const parseParameter = (text: string) => (/^[\w.-]{1,64}$/.test(text) ? text : undefined)

function readKeyHeaders(reader: PolicyReader, field: Field): readonly string[] | undefined {
  const items = reader.list(field, 'a list of header names such as [authorization, x-api-key]')
  if (items === undefined) return undefined
  if (items.length > keyHeadersMax) {
    return reader.problem(field, `names ${items.length} headers; a key is looked for in at most ${keyHeadersMax}`)
  }
  const names = new Set<string>()
  for (const item of items) {
    const name = readHeaderName(reader, item)
    if (name === undefined) continue
    if (names.has(name)) reader.problem(item, `${name} is named twice`)
    names.add(name)
  }
  return [...names]
}

function readTrustedHeaders(
  reader: PolicyReader,
  field: Field,
  plans: Plans,
  keyHeaders: readonly string[],
): TrustedHeaders | undefined {
  const known = ['from', 'subject', 'planHeader', 'plan']
  const fields = reader.fields(field, 'trustedHeaders', known, ['from', 'subject'])
  const [fromAt, subjectAt] = [fields?.get('from'), fields?.get('subject')]
  const [planHeaderAt, planAt] = [fields?.get('planHeader'), fields?.get('plan')]
  const from = fromAt === undefined ? undefined : readCidrs(reader, fromAt)
  if (fromAt !== undefined && from?.length === 0) {
    reader.problem(fromAt, 'names no address: leave `trustedHeaders` out if nobody is to be believed')
  }
  const subject = subjectAt === undefined ? undefined : readHeaderName(reader, subjectAt)
  const planHeader = planHeaderAt === undefined ? undefined : readHeaderName(reader, planHeaderAt)
  const plan = planAt === undefined ? undefined : readPlanName(reader, planAt, plans)
  for (const [name, at] of [[subject, subjectAt] as const, [planHeader, planHeaderAt] as const]) {
    if (name === undefined || at === undefined || !keyHeaders.includes(name)) continue
    reader.problem(at, `${name} carries a key already; a header has one meaning`)
  }
  if (planHeaderAt !== undefined && planHeader !== undefined && planHeader === subject) {
    reader.problem(planHeaderAt, `${planHeader} names the subject already; a header has one meaning`)
  }
  return from === undefined || subject === undefined ? undefined : { from, subject, planHeader, plan }
}

function readCidrs(reader: PolicyReader, field: Field): readonly string[] | undefined {
  const items = reader.list(field, 'a list of addresses such as [127.0.0.1/32, 10.0.0.0/8]')
  if (items === undefined) return undefined
  if (items.length > cidrsMax)
    return reader.problem(field, `has ${items.length} entries; there are at most ${cidrsMax}`)
  const cidrs = new Set<string>()
  for (const item of items) {
    const text = reader.text(item, 'an address or a block of them such as 10.0.0.0/8', (value) => value)
    const parsed = text === undefined ? undefined : parseCidr(text)
    if (parsed?.kind === 'wrong') reader.problem(item, parsed.why)
    if (parsed?.kind !== 'cidr') continue
    if (cidrs.has(parsed.cidr)) reader.problem(item, `${parsed.cidr} is named twice`)
    cidrs.add(parsed.cidr)
  }
  return [...cidrs]
}
