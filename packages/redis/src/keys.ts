import { createHash } from 'node:crypto'
import { encodeKeyPart } from '@weir/core/key-encoding.ts'
import { type Limit, type ScopePart, scopeKinds } from '@weir/core/limits/limit.ts'
import {
  countedSubject,
  type LimitRequest,
  rootOf,
  type ScopeValues,
  scopeValue,
} from '@weir/core/limits/limit-store.ts'

/**
 * The key of one limit's count: `weir:1:{ROOT}:LIMIT[:of=SUBJECT][:SCOPE…]`.
 *
 * - 1 is the layout's version.
 * - ROOT is the hash tag: if the limit counts by subject or key the topmost ancestor of the caller's subject, or that
 *   itself; else `ip:ADDRESS` if by ip, else `_global`. The policy refuses subjects that begin with `ip:` or `_`.
 * - LIMIT is the limit's name: editing anything but the scope keeps the count.
 * - SUBJECT is the one that is counted, if it is not ROOT: all of a tree is in one slot of a Cluster.
 * - SCOPE is `kind=value`, or `kind.name=value` for what carries a name, in the order of `scopeKinds` and then by name.
 *
 * Every text is encoded, so that `:`, `=`, `.`, `{` and `}` are only ever the key's own.
 */

/** Longer texts are cut and distinguished by their hash: a header's value must not make a key of kilobytes. */
const textLengthMax = 128
const prefixLength = 32

/** `~` is in no encoded text, so a shortened text equals no other. */
function encodeBounded(text: string): string {
  if (text.length <= textLengthMax) return encodeKeyPart(text)
  const hash = createHash('sha256').update(text).digest('base64url')
  return `${encodeKeyPart(text.slice(0, prefixLength))}~${hash}`
}

/** Cached encodings: a look-up is cheaper. All are dropped when it is full, because refilling takes a second. */
const encodedMax = 10_000
const encoded = new Map<string, string>()

function encode(text: string): string {
  const known = encoded.get(text)
  if (known !== undefined) return known
  if (encoded.size >= encodedMax) encoded.clear()
  const result = encodeBounded(text)
  encoded.set(text, result)
  return result
}

const partName = (part: ScopePart) => ('name' in part ? `${part.kind}.${encode(part.name)}` : part.kind)

/** The hash of a part of a scope as keys write it, `header.x-team=a%20b`. */
export const hashOfKeyPart = (written: string): string =>
  `sha256:${createHash('sha256').update(written).digest('base64url').slice(0, 22)}`

/**
 * Returns the hash of one part of a scope, for records that must not have its value. It is over the part as keys write
 * it, so that the key of a count can be found by it; 132 bits, which no two parts share.
 */
export const scopeHash = (part: ScopePart, value: string): string => hashOfKeyPart(`${partName(part)}=${encode(value)}`)

/** The parts that are written behind the limit's name: all but those that the hash tag already says. */
function writtenParts(by: readonly ScopePart[], tag: TagKind): { readonly name: string; readonly part: ScopePart }[] {
  return scopeKinds.flatMap((kind) => {
    const parts = by.filter((part) => part.kind === kind && part.kind !== tag)
    const named = new Map(parts.map((part) => [partName(part), part]))
    return [...named].map(([name, part]) => ({ name, part })).sort((a, b) => (a.name < b.name ? -1 : 1))
  })
}

type TagKind = 'subject' | 'ip' | 'global'

function tagKind(by: readonly ScopePart[]): TagKind {
  const has = (kind: ScopePart['kind']) => by.some((part) => part.kind === kind)
  if (has('subject') || has('key')) return 'subject'
  return has('ip') ? 'ip' : 'global'
}

/** Encoded. */
const tagOf = (kind: TagKind, values: ScopeValues): string =>
  kind === 'subject' ? tagOfSubject(rootOf(values)) : encode(kind === 'ip' ? `ip:${values.ip}` : '_global')

/** Behind the name, which subject of the tree is meant; nothing for the topmost. */
const ofSubject = (subject: string, root: string) => (subject === root ? '' : `:of=${tagOfSubject(subject)}`)

const ofCounted = (limit: Limit, kind: TagKind, values: ScopeValues) =>
  kind === 'subject' && values.above !== undefined ? ofSubject(countedSubject(limit, values), rootOf(values)) : ''

/** Encoded; a subject of the policy in full, as it is read back from keys. Its id is bounded. */
const tagOfSubject = (id: string) => (id.length <= textLengthMax || id.startsWith('_') ? encode(id) : encodeKeyPart(id))

/** Whole keys kept per limit, for limits that the tag alone distinguishes; all are dropped when full. */
const keysPerLimitMax = 10_000

type MakeKey = (values: ScopeValues) => string

/** The subject that a limit counts, with its root: it may have been moved. No id has a line break. */
const ownText = (limit: Limit, values: ScopeValues) =>
  values.above === undefined ? values.subject : `${countedSubject(limit, values)}\n${rootOf(values)}`

function keyMaker(limit: Limit): MakeKey {
  const tag = tagKind(limit.by)
  const parts = writtenParts(limit.by, tag)
  const name = encode(limit.name)
  if (parts.length > 0) {
    return (values) => {
      let key = `weir:1:{${tagOf(tag, values)}}:${name}${ofCounted(limit, tag, values)}`
      for (const { name, part } of parts) key += `:${name}=${encode(scopeValue(part, values, limit.override))}`
      return key
    }
  }
  const known = new Map<string, string>()
  return (values) => {
    const text = tag === 'ip' ? values.ip : tag === 'subject' ? ownText(limit, values) : ''
    const key = known.get(text)
    if (key !== undefined) return key
    if (known.size >= keysPerLimitMax) known.clear()
    const made = `weir:1:{${tagOf(tag, values)}}:${name}${ofCounted(limit, tag, values)}`
    known.set(text, made)
    return made
  }
}

/** By the limit's identity: a policy change brings new limits, and the old ones' keys go with them. */
const makers = new WeakMap<Limit, MakeKey>()

/** The key under which this limit counts for these values. Costs a look-up when the subject was seen before. */
export function limitKey(limit: Limit, values: ScopeValues): string {
  let make = makers.get(limit)
  if (make === undefined) {
    make = keyMaker(limit)
    makers.set(limit, make)
  }
  return make(values)
}

/** What the key of a block ends in. */
export const blockSuffix = ':blocked'

/** Where the block of a limit is kept. A scope has a `=`, so no count has this key. */
export const blockKey = (limit: Limit, values: ScopeValues): string => blockKeyBeside(limitKey(limit, values))

/** The key of a limit's block, by the key of its count. */
export const blockKeyBeside = (countKey: string): string => `${countKey}${blockSuffix}`

/** What a query about limits names; the rest may be anything. */
export type KnownScope = Pick<ScopeValues, 'subject' | 'above'> &
  Partial<Pick<ScopeValues, 'keyId' | 'ip' | 'route' | 'method'>>

/** Where a limit counts for these values: under one key, under several to be searched for, or under an unknown one. */
export type CountKeys =
  | { readonly kind: 'key'; readonly key: string }
  | {
      readonly kind: 'several'
      /** For SCAN: all of one hash tag, so in one slot. Blocks match too. */
      readonly pattern: string
      /** Whether a key that matches the pattern is a count of these values. */
      readonly isCount: (key: string) => boolean
    }
  /** It counts by an address, and that was not named. */
  | { readonly kind: 'unknown' }

const knownPart = (part: ScopePart, known: KnownScope): string | undefined => {
  if (part.kind === 'key') return known.keyId
  if (part.kind === 'ip' || part.kind === 'route' || part.kind === 'method') return known[part.kind]
  return part.kind === 'subject' || part.kind === 'global' ? '' : undefined
}

/** For commands that look after limits; a decision knows all of its values and asks for `limitKey`. */
export function countKeys(limit: Limit, known: KnownScope): CountKeys {
  const tag = tagKind(limit.by)
  if (tag === 'ip' && known.ip === undefined) return { kind: 'unknown' }
  const values: ScopeValues = { keyId: '', ip: '', route: '', method: '', ...known }
  const parts = writtenParts(limit.by, tag).map(({ name, part }) => ({ name, value: knownPart(part, known) }))
  if (parts.every(({ value }) => value !== undefined)) return { kind: 'key', key: limitKey(limit, values) }
  const prefix = `weir:1:{${tagOf(tag, values)}}:${encode(limit.name)}${ofCounted(limit, tag, values)}:`
  const wanted = parts.flatMap(({ name, value }) => (value === undefined ? [] : [`${name}=${encode(value)}`]))
  const isCount = (key: string) => {
    const written = key.slice(prefix.length).split(':')
    return written.length === parts.length && wanted.every((text) => written.includes(text))
  }
  // Encoded texts have none of the characters that mean something in a pattern.
  return { kind: 'several', pattern: `${prefix}*`, isCount }
}

/** The scope that a count's key was written for, as a person reads it: `route=GET /v1/users/:id`. */
export function scopeText(countKey: string): string {
  const [, written = ''] = /^weir:1:\{[^}]*\}:[^:]*:?(.*)$/.exec(countKey) ?? []
  const parts = written.split(':').filter((part) => part !== '' && !part.startsWith(ofPrefix))
  return parts.map(decodeURIComponent).join(', ')
}

/** What a key of a count begins a subject with that is not the root of its tree. */
const ofPrefix = 'of='

/** The subject that a count's key is of, as far as the limit counts by subjects. */
export function subjectInKey(countKey: string): string {
  const [, root = '', of = root] = /^weir:1:\{([^}]*)\}:[^:]*(?::of=([^:]*))?/.exec(countKey) ?? []
  return decodeURIComponent(of)
}

/** A subject, with the topmost of its tree if that is another. */
export interface TreeSubject {
  readonly subject: string
  readonly root?: string | undefined
}

/** The ancestor of a subject that a count's key is of; undefined for the subject itself and for what others share. */
export function ancestorInKey(countKey: string, { subject, root = subject }: TreeSubject): string | undefined {
  if (root === subject || !countKey.startsWith(`weir:1:{${tagOfSubject(root)}}:`)) return undefined
  const found = subjectInKey(countKey)
  return found === subject ? undefined : found
}

/** Whose keys a request's are. */
export const treeSubject = (scope: Pick<ScopeValues, 'subject' | 'above'>): TreeSubject => ({
  subject: scope.subject,
  root: rootOf(scope),
})

/** What is kept of a subject beside its counts. Limits' names do not begin with `_`. */
const keyBeside = ({ subject, root = subject }: TreeSubject, name: string): string =>
  `weir:1:{${tagOfSubject(root)}}:${name}${ofSubject(subject, root)}`

/** Where the first answer under a caller's idempotency key is kept. */
export function markerKey(scope: Pick<ScopeValues, 'subject' | 'above'>, idempotencyKey: string): string {
  const hash = createHash('sha256').update(idempotencyKey).digest('base64url')
  return keyBeside(treeSubject(scope), `_once:${hash}`)
}

/** Where the markers of a subject are counted, if the request's own slot is its tree's. */
export const markersKey = (subject: TreeSubject): string => keyBeside(subject, '_markers')

/**
 * Where the markers of a request's subject are counted, in the slot of the request's own. Undefined for a part of a
 * decision whose markers are counted with those of another part.
 */
export function tallyKey({ scope, idempotency, reservation }: LimitRequest): string | undefined {
  if (idempotency === undefined && reservation?.key !== undefined && reservation.siblingKeys === undefined)
    return undefined
  const { subject = scope.subject } = idempotency ?? {}
  const key = markersKey(treeSubject(scope))
  return subject === scope.subject ? key : `${key}:${encode(subject)}`
}

/** The key of a reservation's marker; only in a Cluster it has other hash tags than its tree's. */
export const settlementKey = (subject: TreeSubject, decisionId: string): string =>
  keyBeside(subject, `_settle:${encodeBounded(decisionId)}`)

/** The same in the slot of a limit's count. */
export const settlementKeyBeside = (countKey: string, decisionId: string): string =>
  `${countKey.slice(0, countKey.indexOf('}') + 1)}:_settle:${encodeBounded(decisionId)}`
