/**
 * Headers of a client that no upstream gets, in lower case with hyphens. The proxy drops them, and so does every file of
 * docs/integrations, which test/repo compares with these lists.
 */

/** By these a framework serves another method or path than the one that was decided on. */
export const overrides = [
  ...['x-http-method-override', 'x-http-method', 'x-method-override', 'x-original-url', 'x-rewrite-url'],
] as const

/** The word of a proxy on its client, which no other client is believed. */
export const proxyWords = ['x-real-ip', 'x-client-ip', 'true-client-ip'] as const

/** The word of Weir, and of a proxy, on the request: these, and any name that begins so. */
export const words = ['weir-decision', 'weir-degraded', 'forwarded'] as const
export const weirPrefix = 'x-weir-'
export const forwardedPrefix = 'x-forwarded-'

/**
 * Gateways of the CGI kind, and PHP, read `X_Weir_Subject`, `X.Weir.Subject` and some `X~Weir~Subject` as `X-Weir-Subject`, so all
 * are one name: letters and digits with hyphens. `name` is in lower case.
 */
export const withHyphens = (name: string): string =>
  /[^a-z\d-]/.test(name) ? name.replaceAll(/[^a-z\d-]/g, '-') : name
