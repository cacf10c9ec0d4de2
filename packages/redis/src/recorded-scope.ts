import { isIP } from 'node:net'
import { isOfOneSubject, type Limit, partText } from '@weir/core/limits/limit.ts'
import { hashOfKeyPart, limitKey, scopeHash, subjectInKey } from './keys.ts'

/** What a limit counted by, in the words of a decision's record. */
export interface RecordedScope {
  readonly limit: Limit
  /** Empty where subjects share the count. */
  readonly subject: string
  /** The topmost of its tree; absent for the subject itself. */
  readonly root?: string | undefined
  /** By the texts of the scope. Values may be hashes; an address may be one too, be cut or be left out. */
  readonly by: Readonly<Record<string, string>>
}

const hashed = /^sha256:[\w-]{22}$/
const has = ({ by }: Limit, ...kinds: readonly string[]) => by.some(({ kind }) => kinds.includes(kind))

/** Whether the text is an address as limits count by it; false for a group of addresses, a hash and nothing. */
export const isWholeAddress = (text: string): boolean => isIP(text) !== 0 || /::\/\d{2}$/.test(text)

const prefixOf = (address: string) => address.replace(/\.\d+$/, '.0/24')
const addressHash = (address: string) => scopeHash({ kind: 'ip' }, address)

/** The forms in which records may say one address, but for the /24 that others share with it. */
export const addressForms = (address: string): readonly string[] => [address, addressHash(address)]

const lacksAddress = ({ limit, by }: RecordedScope) => has(limit, 'ip') && !isWholeAddress(by.ip ?? '')

/** Whether a value of the record is not, or may not be, the one that was counted by: the key has to be searched for. */
export const isHidden = (scope: RecordedScope): boolean =>
  lacksAddress(scope) || scope.limit.by.some((part) => hashed.test(scope.by[partText(part)] ?? ''))

function written({ limit, subject, root, by }: RecordedScope): string {
  const { key: keyId = '', ip = '', route = '', method = '' } = by
  const above = root === undefined ? undefined : [{ id: root, timeZone: 'UTC', anchor: 1 }]
  return limitKey(limit, { subject, keyId, ip, route, method, above, named: new Map(Object.entries(by)) })
}

/** The key of the count, if all values may be clear. A plain value can look like a hash: it may be hidden as well. */
export function keyOfScope(scope: RecordedScope): string | undefined {
  const isClear = !isHidden(scope) || (scope.limit.record === 'plain' && !lacksAddress(scope))
  return isClear ? written(scope) : undefined
}

const keyForm = /^weir:1:\{([^}]*)\}:([^:]*):?(.*)$/

/** The name of the limit whose count has this key. */
export const limitOfKey = (key: string): string => decodeURIComponent(keyForm.exec(key)?.[2] ?? '')

/** The subject that a count's key is of, as far as the limit counts by subjects; empty where they share the count. */
export const subjectOfKey = (key: string, { by }: Limit): string => (isOfOneSubject(by) ? subjectInKey(key) : '')

/** What tells a count from the others of its limit, with the address in one form; the address of the key itself. */
function identify(key: string, limit: Limit, hashOf: (part: string) => string) {
  const [, tag = '', , rest = ''] = keyForm.exec(key) ?? []
  const parts = rest === '' ? [] : rest.split(':')
  const isTagged = has(limit, 'ip') && !has(limit, 'subject', 'key')
  const address = parts.find((part) => part.startsWith('ip='))?.slice('ip='.length)
  const others = parts.filter((part) => !part.startsWith('ip=')).map(hashOf)
  return {
    address: decodeURIComponent(isTagged ? tag.replace(/^ip%3A/, '') : (address ?? '')),
    of: (form: string) => [isTagged ? '' : tag, form, ...others].join(' '),
  }
}

/** A record's value is a hash already where it is hidden. */
function hashOfRecorded(part: string): string {
  const value = decodeURIComponent(part.slice(part.indexOf('=') + 1))
  return hashed.test(value) ? value : hashOfKeyPart(part)
}

/** How a record identifies a count among those of its limit. */
export function identityOfRecord(scope: RecordedScope): string {
  const { address, of } = identify(written(scope), scope.limit, hashOfRecorded)
  return of(isWholeAddress(address) ? addressHash(address) : address)
}

/** How records may identify the count of this key: by its address, as its hash, its /24 or not at all. */
export function identitiesOfKey(key: string, limit: Limit): readonly string[] {
  const { address, of } = identify(key, limit, hashOfKeyPart)
  return address === '' ? [of('')] : [addressHash(address), prefixOf(address), ''].map(of)
}
