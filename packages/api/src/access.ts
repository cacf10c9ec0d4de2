import { tokenScopes } from '@weir/policy/access-token.ts'
import { durationPattern, namePattern, timePattern } from '@weir/policy/policy-values.ts'
import { partSchema } from '@weir/policy/reader/part-schema.ts'
import { answer, media, noBody, operation } from './operation.ts'
import { origin } from './policy.ts'
import {
  closed,
  flag,
  list,
  nullable,
  type Of,
  object,
  oneOf,
  optional,
  optionalBody,
  page,
  pageQuery,
  text,
  textOrNull,
  texts,
  whole,
} from './schema.ts'
import { Type } from './type.ts'

const key = object({
  id: text('key id, as in records'),
  subject: text('the subject that owns the key'),
  expires: textOrNull('RFC 3339; null: never expires'),
  prefix: textOrNull('first characters of the key; null for a key from the policy file'),
  created: textOrNull('RFC 3339; null for a key from the policy file'),
})
/** A key of a subject. */
export type Key = Of<typeof key>
const madeKey = object({ ...key.properties, key: text('the key itself: shown only once, never stored') })
/** A key that was just made. */
export type MadeKey = Of<typeof madeKey>
const newKey = {
  id: optional(
    text('key id, as in records; derived from its hash if omitted', { described: { pattern: namePattern.source } }),
  ),
  expires: optional(
    text('RFC 3339, in the future; the key is rejected from then on', { described: { pattern: timePattern.source } }),
  ),
}
const keysTag = { tag: 'keys', scope: 'keys' } as const

/** Keys there are. */
export const listKeys = operation('GET /v1/keys', {
  ...keysTag,
  summary: 'List keys, except revoked ones',
  query: { ...pageQuery, subject: optional(text('only keys of this subject')) },
  answers: { 200: answer('A page', page(key)) },
  problems: [404, 503],
})
/** Makes a key of a subject. */
export const createKey = operation('POST /v1/subjects/:id/keys', {
  ...keysTag,
  summary: 'Create a key; it is shown only in this response',
  params: { id: text('subject id') },
  body: optionalBody(newKey),
  answers: { 201: answer('The key', madeKey) },
  problems: [404, 409, 422, 503],
})
/** Replaces a key. */
export const rotateKey = operation('POST /v1/keys/:id/rotate', {
  ...keysTag,
  summary: 'Rotate a key; the old one keeps working for a while',
  params: { id: text('id of the old key') },
  body: optionalBody({
    ...newKey,
    overlap: optional(
      text('how long the old key keeps working, such as 24h (the default); 0s: revoke it immediately', {
        described: { pattern: `${durationPattern}|^0s$` },
      }),
    ),
  }),
  answers: { 201: answer('The new key and the old one', object({ ...madeKey.properties, old: key })) },
  problems: [404, 409, 422, 503],
})
/** Revokes a key. */
export const revokeKey = operation('DELETE /v1/keys/:id', {
  ...keysTag,
  summary: 'Revoke a key; every process rejects it within a second',
  params: { id: text('key id') },
  answers: { 204: noBody('Revoked') },
  problems: [404, 422, 503],
})

const tokenLimits = {
  subjects: optional(texts('limits the token to reading the usage of these subjects')),
  expires: optional(text('RFC 3339; the token is rejected from then on')),
}
const scopes = (rules: object = {}) => list(oneOf(tokenScopes), 'what the token may do; admin may do everything', rules)
const token = object({ name: text('token name, as in the audit log'), scopes: scopes(), ...tokenLimits })
const listedToken = object({ ...token.properties, origin })
/** A token in a list. */
export type ListedToken = Of<typeof listedToken>
const newToken = Type.Object(
  { name: Type.String({ maxLength: 64 }), scopes: scopes({ minItems: 1, uniqueItems: true }), ...tokenLimits },
  { additionalProperties: false, described: partSchema('tokens') },
)
/** A token that is to be made. */
export type NewToken = Of<typeof newToken>
const tokensTag = { tag: 'tokens', scope: 'admin' } as const

/** Tokens there are. */
export const listTokens = operation('GET /v1/tokens', {
  ...tokensTag,
  summary: 'List tokens',
  query: pageQuery,
  answers: { 200: answer('A page', page(listedToken)) },
  problems: [503],
})
/** Makes a token. */
export const createToken = operation('POST /v1/tokens', {
  ...tokensTag,
  summary: 'Create a token; it is shown only in this response',
  body: newToken,
  answers: { 201: answer('The token', object({ ...token.properties, token: text('shown only once, never stored') })) },
  problems: [409, 422, 503],
})
/** Deletes a token. */
export const deleteToken = operation('DELETE /v1/tokens/:name', {
  ...tokensTag,
  summary: 'Delete a token; every process rejects it within a second',
  params: { name: text('token name') },
  answers: { 204: noBody('Deleted') },
  problems: [404, 422, 503],
})

const portal = { tag: 'portal', scope: 'keys', params: { id: text('subject id') } } as const
/** Makes a token with which a customer reads its own usage. */
export const createPortalToken = operation('POST /v1/subjects/:id/portal', {
  ...portal,
  summary: 'Create a token that reads the usage of this subject',
  body: optionalBody({
    expires_in: optional(text('5m to 7d; default 1h', { described: { pattern: durationPattern } })),
  }),
  answers: {
    201: answer(
      'The token',
      object({
        subject: text('subject id'),
        token: text('the token itself: shown only once, never stored'),
        link: textOrNull('opens the customer’s page; null without WEIR_CONSOLE_PUBLIC_URL'),
        expires_at: text('RFC 3339; the token is rejected from then on'),
      }),
    ),
  },
  problems: [404, 503],
})
/** Ends every portal token of a subject. */
export const endPortalTokens = operation('DELETE /v1/subjects/:id/portal', {
  ...portal,
  summary: 'Revoke all portal tokens of this subject',
  answers: { 204: noBody('Revoked') },
  problems: [404, 422, 503],
})

const session = object({
  by: text('owner of the credential, as in the audit log'),
  scopes: texts('what the session may read and change'),
  subjects: nullable(texts('subjects whose rows the session may read; null: all')),
  vendor: object({ name: text('on customers’ pages; empty: Weir'), color: text('such as `#0b5cad`; empty: Weir’s') }),
  csrf: text('send in X-Weir-CSRF with every request except GET'),
  ends_at: text('RFC 3339; earlier after an hour without a request'),
})
/** Who is signed in. */
export type Session = Of<typeof session>
const sessionTag = { tag: 'session', problems: [401, 403] } as const
/** Signs a browser in. */
export const signIn = operation('POST /session', {
  ...sessionTag,
  summary: 'Sign in',
  body: object({ token: text('a token, a portal token or a key', { minLength: 1, maxLength: 4_096 }) }),
  answers: { 201: answer('Signed in', session) },
})
/** Says who is signed in. */
export const getSession = operation('GET /session', {
  ...sessionTag,
  summary: 'Get the current session',
  answers: { 200: answer('The session', session), 204: noBody('Not signed in') },
})
/** Signs a browser out. */
export const signOut = operation('DELETE /session', {
  ...sessionTag,
  summary: 'Sign out',
  answers: { 204: noBody('Signed out') },
})

const htmlPage = (description: string) => media(description, { 'text/html': text('an HTML page') })
const link = { tag: 'unsubscribe', params: { token: text('as in the mail') } } as const
const noLink = { 404: htmlPage('Unknown link') }
/** The page of a link to unsubscribe. */
export const showUnsubscribe = operation('GET /unsubscribe/:token', {
  ...link,
  summary: 'Show the page of an unsubscribe link',
  answers: { 200: htmlPage('A page with a button'), ...noLink },
})
/** Unsubscribes an address. */
export const unsubscribe = operation('POST /unsubscribe/:token', {
  ...link,
  summary: 'Unsubscribe an address',
  consumes: ['application/x-www-form-urlencoded', 'multipart/form-data'],
  isAnyType: true,
  body: Type.Unsafe<unknown>({
    described: { type: ['object', 'null'], additionalProperties: true, description: 'RFC 8058; ignored' },
  }),
  answers: { 200: htmlPage('Unsubscribed'), 503: htmlPage('Try again'), ...noLink },
})

/** The page of a link to confirm an address. */
export const showConfirm = operation('GET /confirm/:token', {
  ...link,
  summary: 'Show the page of a confirmation link',
  answers: { 200: htmlPage('A page with a button'), ...noLink },
})
/** Confirms an address. */
export const confirmAddress = operation('POST /confirm/:token', {
  ...link,
  summary: 'Confirm an address',
  consumes: ['application/x-www-form-urlencoded', 'multipart/form-data'],
  isAnyType: true,
  body: Type.Unsafe<unknown>({
    described: { type: ['object', 'null'], additionalProperties: true, description: 'ignored' },
  }),
  answers: { 200: htmlPage('Confirmed'), 503: htmlPage('Try again'), ...noLink },
})

const ownAlerts = object({
  allowed: flag('whether the plan or the subject allows the customer to choose'),
  addresses: list(
    object({
      email: text('the address'),
      state: oneOf(['confirmed', 'pending', 'unsubscribed'], 'pending: until its link is opened, for up to a day'),
    }),
  ),
  percents: list(whole('percent of each calendar limit')),
})
/** What a customer has chosen for its own alerts. */
export type OwnAlertsAnswer = Of<typeof ownAlerts>
const ofOwnAlerts = { tag: 'alerts', reach: 'own', params: { id: text('subject id') } } as const
/** What a customer has chosen for its own alerts. */
export const getOwnAlerts = operation('GET /v1/subjects/:id/own-alerts', {
  ...ofOwnAlerts,
  scope: 'read',
  summary: 'Get the addresses and percentages of a customer’s own alerts',
  answers: { 200: answer('The settings', ownAlerts) },
  problems: [404, 503],
})
/** Chooses addresses and percentages of a customer's own alerts. */
export const putOwnAlerts = operation('PUT /v1/subjects/:id/own-alerts', {
  ...ofOwnAlerts,
  scope: 'write',
  summary: 'Set the addresses and percentages of a customer’s own alerts; a new address is sent a confirmation link',
  body: closed({
    addresses: texts('at most five; unconfirmed ones expire after a day', { maxItems: 5 }),
    percents: list(Type.Integer({ minimum: 1, maximum: 100 }), 'percent of each calendar limit', { maxItems: 5 }),
  }),
  answers: { 200: answer('The settings', ownAlerts) },
  problems: [404, 409, 422, 503],
})
