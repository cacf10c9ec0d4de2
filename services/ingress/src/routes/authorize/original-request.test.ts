import { describe, expect, it } from 'vitest'
import { originalRequest } from './original-request.ts'

const read = (headers: Record<string, string>, rest = '', method = 'GET', trusted = true) =>
  originalRequest({ method, rest, headers }, () => trusted, '192.0.2.1')

const original = { 'x-original-method': 'POST', 'x-original-uri': '/v1/search?a=b' }
const forwarded = { 'x-forwarded-method': 'POST', 'x-forwarded-uri': '/v1/search?a=b' }
const wanted = { method: 'POST', url: '/v1/search?a=b' }

describe('the original request', () => {
  it.each([
    ['X-Original-Method and X-Original-URI (nginx)', original, ''],
    [
      'X-Original-URL with scheme and host (ingress-nginx)',
      { ...original, 'x-original-url': 'https://a.test/v1/search?a=b' },
      '',
    ],
    ['X-Forwarded-Method and X-Forwarded-Uri (Traefik, Caddy, APISIX)', forwarded, ''],
    ['both, where they agree', { ...original, ...forwarded }, ''],
    ['the request line (Envoy)', {}, '/v1/search?a=b'],
    ['the request line and headers, where they agree', forwarded, '/v1/search?a=b'],
  ])('is read from %s', (_, headers, rest) => {
    expect(read(headers, rest, 'POST')).toEqual(wanted)
  })

  it.each([
    ['https://a.test', '/'],
    ['http://a.test?x=1', '/?x=1'],
  ])('of %s is %s', (given, url) => {
    expect(read({ 'x-original-method': 'GET', 'x-original-url': given })).toEqual({ method: 'GET', url })
  })

  it('is never taken from headers of a peer that is not trusted; the request line is, because it speaks for itself', () => {
    for (const [name, value] of Object.entries({ ...original, ...forwarded, 'x-original-url': '/' })) {
      expect(read({ [name]: value }, '/v1/search', 'GET', false), name).toMatchObject({
        type: 'urn:weir:problem:untrusted-proxy',
        detail: expect.stringContaining(`${name} came from 192.0.2.1`),
      })
    }
    expect(read({}, '/v1/search?a=b', 'POST', false)).toEqual(wanted)
  })

  it.each<[string, Record<string, string>, string]>([
    ['nothing says what it is', {}, ''],
    ['only a method is said', { 'x-original-method': 'GET' }, ''],
    ['only a path is said', { 'x-forwarded-uri': '/' }, ''],
    [
      'a forged X-Original-URI comes with what the gateway set',
      { ...forwarded, ...original, 'x-original-uri': '/cheap' },
      '',
    ],
    ['a forged X-Original-URL comes with what the gateway set', { ...original, 'x-original-url': '/cheap' }, ''],
    ['a forged method comes with what the gateway set', { ...original, ...forwarded, 'x-original-method': 'GET' }, ''],
    ['a forged header comes with the request line', { ...original }, '/v1/dear'],
    ['a header came twice', { ...original, 'x-original-uri': '/cheap, /v1/search' }, ''],
    ['a method came twice', { ...original, 'x-original-method': 'GET, POST' }, ''],
    ['the method is none', { ...original, 'x-original-method': 'post' }, ''],
    ['the path is none', { ...original, 'x-original-uri': 'v1/search' }, ''],
    ['the path is empty', { ...original, 'x-original-uri': '' }, ''],
  ])('is unclear when %s', (_, headers, rest) => {
    expect(read(headers, rest, 'POST')).toMatchObject({
      type: 'urn:weir:problem:bad-request',
      detail: expect.stringContaining(' '),
    })
  })
})
