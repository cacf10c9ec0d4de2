import { hash } from 'node:crypto'

/** Returns the `ETag` of what it is made of. */
export const etagOf = (...parts: readonly string[]): string => `"${hash('sha256', parts.join('\n'), 'base64url')}"`

/** Whether a header `If-None-Match` names this tag. */
export const isKnown = (known: string | undefined, etag: string): boolean =>
  known?.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag) === true
