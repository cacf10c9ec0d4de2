import { hash } from 'node:crypto'

/** Returns the `ETag` of what it is made of. */
export const etagOf = (...parts: readonly string[]): string => `"${hash('sha256', parts.join('\n'), 'base64url')}"`
