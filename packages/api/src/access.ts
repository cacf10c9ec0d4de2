import { tokenScopes } from '@weir/policy/policy.ts'
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
  id: text('names the key in records'),
  subject: text('whose key it is'),
  expires: textOrNull('RFC 3339; null for never'),
  prefix: textOrNull('the first characters of the key; null for a key of a file'),
  created: textOrNull('RFC 3339; null for a key of a file'),
})
/** A key of a subject. */
export type Key = Of<typeof key>
const madeKey = object({ ...key.properties, key: text('the key itself: shown this once, kept nowhere') })
/** A key that was just made. */
export type MadeKey = Of<typeof madeKey>
const newKey = {
  id: optional(
    text('names the key in records; made of its hash if left out', { described: { pattern: namePattern.source } }),
  ),
  expires: optional(
    text('RFC 3339, a time to come; from then on it is refused', { described: { pattern: timePattern.source } }),
  ),
}
const keysTag = { tag: 'keys', scope: 'keys' } as const

/** Keys there are. */
export const listKeys = operation('GET /v1/keys', {
  ...keysTag,
  summary: 'Keys there are, revoked ones apart',
  query: { ...pageQuery, subject: optional(text('only its keys')) },
  answers: { 200: answer('A page', page(key)) },
  problems: [404, 503],
})
/** Makes a key of a subject. */
export const createKey = operation('POST /v1/subjects/:id/keys', {
  ...keysTag,
  summary: 'Make a key; the answer is the only one that shows it',
  params: { id: text('of the subject') },
  body: optionalBody(newKey),
  answers: { 201: answer('The key', madeKey) },
  problems: [404, 409, 422, 503],
})
/** Replaces a key. */
export const rotateKey = operation('POST /v1/keys/:id/rotate', {
  ...keysTag,
  summary: 'Make a new key in place of one that goes on for a while',
  params: { id: text('of the old key') },
  body: optionalBody({
    ...newKey,
    overlap: optional(
      text('how long the old key goes on, such as 24h (the default); 0s for not at all', {
        described: { pattern: `${durationPattern}|^0s$` },
      }),
    ),
  }),
  answers: { 201: answer('The new key, and the old one', object({ ...madeKey.properties, old: key })) },
  problems: [404, 409, 422, 503],
})
/** Revokes a key. */
export const revokeKey = operation('DELETE /v1/keys/:id', {
  ...keysTag,
  summary: 'Revoke a key: it is refused everywhere within a second',
  params: { id: text('of the key') },
  answers: { 204: noBody('Revoked') },
  problems: [404, 422, 503],
})

const tokenLimits = {
  subjects: optional(texts('it reads the usage of these subjects, and nothing else')),
  expires: optional(text('RFC 3339; from then on it is refused')),
}
const scopes = (rules: object = {}) => list(oneOf(tokenScopes), 'what it may do; admin may do everything', rules)
const token = object({ name: text('who it is, in the audit'), scopes: scopes(), ...tokenLimits })
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
  summary: 'Tokens there are',
  query: pageQuery,
  answers: { 200: answer('A page', page(listedToken)) },
  problems: [503],
})
/** Makes a token. */
export const createToken = operation('POST /v1/tokens', {
  ...tokensTag,
  summary: 'Make a token; the answer is the only one that shows it',
  body: newToken,
  answers: { 201: answer('The token', object({ ...token.properties, token: text('shown this once, kept nowhere') })) },
  problems: [409, 422, 503],
})
/** Deletes a token. */
export const deleteToken = operation('DELETE /v1/tokens/:name', {
  ...tokensTag,
  summary: 'Delete a token: it is refused everywhere within a second',
  params: { name: text('of the token') },
  answers: { 204: noBody('Deleted') },
  problems: [404, 422, 503],
})

const portal = { tag: 'portal', scope: 'keys', params: { id: text('of the subject') } } as const
/** Makes a token with which a customer reads its own usage. */
export const createPortalToken = operation('POST /v1/subjects/:id/portal', {
  ...portal,
  summary: 'Make a token that reads the usage of this subject',
  body: optionalBody({
    expires_in: optional(text('5m to 7d; 1h without it', { described: { pattern: durationPattern } })),
  }),
  answers: {
    201: answer(
      'The token',
      object({
        subject: text('whose'),
        token: text('the token: shown this once, kept nowhere'),
        expires_at: text('RFC 3339; from then on it is refused'),
      }),
    ),
  },
  problems: [404, 503],
})
/** Ends every portal token of a subject. */
export const endPortalTokens = operation('DELETE /v1/subjects/:id/portal', {
  ...portal,
  summary: 'End every portal token of this subject',
  answers: { 204: noBody('Ended') },
  problems: [404, 422, 503],
})

const session = object({
  by: text('whose credential it is, as in the audit'),
  scopes: texts('what may be asked and changed'),
  subjects: nullable(texts('whose rows may be read; null for all')),
  vendor: object({ name: text('on customers’ pages; empty: Weir'), color: text('such as `#0b5cad`; empty: Weir’s') }),
  csrf: text('goes with every request but GET, in X-Weir-CSRF'),
  ends_at: text('RFC 3339; an hour without a request ends it earlier'),
})
/** Who is signed in. */
export type Session = Of<typeof session>
const sessionTag = { tag: 'session', problems: [401, 403] } as const
/** Signs a browser in. */
export const signIn = operation('POST /session', {
  ...sessionTag,
  summary: 'Sign in',
  body: object({ token: text('a token, a portal’s token or a key', { minLength: 1, maxLength: 4_096 }) }),
  answers: { 201: answer('Signed in', session) },
})
/** Says who is signed in. */
export const getSession = operation('GET /session', {
  ...sessionTag,
  summary: 'Who is signed in',
  answers: { 200: answer('The session', session), 204: noBody('Nobody is') },
})
/** Signs a browser out. */
export const signOut = operation('DELETE /session', {
  ...sessionTag,
  summary: 'Sign out',
  answers: { 204: noBody('Signed out') },
})

const htmlPage = (description: string) => media(description, { 'text/html': text('a page for people') })
const link = { tag: 'unsubscribe', params: { token: text('as the mail has it') } } as const
const noLink = { 404: htmlPage('Weir made no such link') }
/** The page of a link to unsubscribe. */
export const showUnsubscribe = operation('GET /unsubscribe/:token', {
  ...link,
  summary: 'The page of a link to unsubscribe',
  answers: { 200: htmlPage('A page with a button'), ...noLink },
})
/** Unsubscribes an address. */
export const unsubscribe = operation('POST /unsubscribe/:token', {
  ...link,
  summary: 'Unsubscribe an address',
  consumes: ['application/x-www-form-urlencoded', 'multipart/form-data'],
  isAnyType: true,
  body: Type.Unsafe<unknown>({
    described: { type: ['object', 'null'], additionalProperties: true, description: 'RFC 8058; not read' },
  }),
  answers: { 200: htmlPage('Unsubscribed'), 503: htmlPage('Try again'), ...noLink },
})

/** The page of a link to confirm an address. */
export const showConfirm = operation('GET /confirm/:token', {
  ...link,
  summary: 'The page of a link to confirm an address',
  answers: { 200: htmlPage('A page with a button'), ...noLink },
})
/** Confirms an address. */
export const confirmAddress = operation('POST /confirm/:token', {
  ...link,
  summary: 'Confirm an address',
  consumes: ['application/x-www-form-urlencoded', 'multipart/form-data'],
  isAnyType: true,
  body: Type.Unsafe<unknown>({
    described: { type: ['object', 'null'], additionalProperties: true, description: 'not read' },
  }),
  answers: { 200: htmlPage('Confirmed'), 503: htmlPage('Try again'), ...noLink },
})

const ownAlerts = object({
  allowed: flag('whether the plan, or the subject itself, lets the customer choose'),
  addresses: list(
    object({
      email: text('the address'),
      state: oneOf(['confirmed', 'pending', 'unsubscribed'], 'pending: for a day, until its link is opened'),
    }),
  ),
  percents: list(whole('of each calendar limit')),
})
/** What a customer has chosen for its own alerts. */
export type OwnAlertsAnswer = Of<typeof ownAlerts>
const ofOwnAlerts = { tag: 'alerts', reach: 'own', params: { id: text('of the subject') } } as const
/** What a customer has chosen for its own alerts. */
export const getOwnAlerts = operation('GET /v1/subjects/:id/own-alerts', {
  ...ofOwnAlerts,
  scope: 'read',
  summary: 'Addresses and percentages that a customer has chosen for its alerts',
  answers: { 200: answer('What was chosen', ownAlerts) },
  problems: [404, 503],
})
/** Chooses addresses and percentages of a customer's own alerts. */
export const putOwnAlerts = operation('PUT /v1/subjects/:id/own-alerts', {
  ...ofOwnAlerts,
  scope: 'write',
  summary: 'Choose addresses and percentages of a customer’s alerts; a new address gets a link to confirm it',
  body: closed({
    addresses: texts('at most five; an unconfirmed one stays for a day', { maxItems: 5 }),
    percents: list(Type.Integer({ minimum: 1, maximum: 100 }), 'of each calendar limit', { maxItems: 5 }),
  }),
  answers: { 200: answer('What was chosen', ownAlerts) },
  problems: [404, 409, 422, 503],
})
