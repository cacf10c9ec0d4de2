/**
 * Headers of a client that no upstream gets, in lower case with hyphens. The proxy drops them, and so does every file
 * of docs/integrations, which test/repo compares with these lists.
 */

/** With these a framework serves another method or path than the one that was decided. */
export const overrides = [
  ...['x-http-method-override', 'x-http-method', 'x-method-override', 'x-original-url', 'x-rewrite-url'],
] as const

/** What a proxy says about its client; from other clients it is not believed. */
export const proxyWords = ['x-real-ip', 'x-client-ip', 'true-client-ip'] as const

/** What Weir and proxies say about the request: these, and any name with one of the prefixes. */
export const words = ['weir-decision', 'weir-degraded', 'forwarded'] as const
export const weirPrefix = 'x-weir-'
export const forwardedPrefix = 'x-forwarded-'

/**
 * Writes a name with hyphens. CGI gateways and PHP read `X_Weir_Subject`, `X.Weir.Subject` and some `X~Weir~Subject` as
 * `X-Weir-Subject`, so all are one name. `name` is in lower case.
 */
export const withHyphens = (name: string): string =>
  /[^a-z\d-]/.test(name) ? name.replaceAll(/[^a-z\d-]/g, '-') : name
