import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { normalizePath, pathToMatch, readOddPath } from './normalize-path.ts'

const path = (raw: string) => {
  const found = normalizePath(raw)
  return found.kind === 'path' ? found.path : `refused: it ${found.why}`
}

/** Pieces from which paths are built that mean trouble more often than chance would have it. */
const piece = fc.oneof(
  fc.constantFrom('/', '/', '//', '.', '..', '%2e', '%2E', '%73', '%7e', '%24', '%C3%A9', '%c3%a9', '%20', 'a', 'v1'),
  fc.constantFrom('%', '%2f', '%5C', '\\', ';', '%3b', '%00', '%25', '%252e', '?', '#', '|', '[', '%FF', '\u0001', 'é'),
  fc.string({ minLength: 1, maxLength: 3 }),
  fc.integer({ min: 0, max: 255 }).map((byte) => `%${byte.toString(16).padStart(2, '0')}`),
)
const rawPath = fc.array(piece, { maxLength: 12 }).map((pieces) => `/${pieces.join('')}`)

/** What a server makes of a path: escapes decoded, then the segments walked. */
function segmentsOf(raw: string): string[] {
  const kept: string[] = []
  for (const segment of raw.split('/').map(decodeURIComponent)) {
    if (segment === '..') kept.pop()
    else if (segment !== '' && segment !== '.') kept.push(segment)
  }
  return kept
}

describe('normalizePath', () => {
  it.each([
    ['/', '/'],
    ['/v1/search', '/v1/search'],
    ['//v1/search', '/v1/search'],
    ['/v1//search//', '/v1/search/'],
    ['/v1/%73earch', '/v1/search'],
    ['/%2e%2e/v1/./search', '/v1/search'],
    ['/x/%2E%2e/v1/search', '/v1/search'],
    ['/v1/search/..', '/v1/'],
    ['/v1/search/.', '/v1/search/'],
    ['/../..', '/'],
    ['/.well-known/..x/...', '/.well-known/..x/...'],
    ['/caf%c3%a9|', '/caf%C3%A9%7C'],
    ['/a%2Bb+c', '/a%2Bb+c'],
    ['/100%25', '/100%25'],
  ])('writes %s as %s', (raw, normal) => {
    expect(path(raw)).toBe(normal)
  })

  it.each([
    ['', 'begin with a slash'],
    ['*', 'begin with a slash'],
    ['http://a/b', 'begin with a slash'],
    ['/v1%2Fsearch', '%2F'],
    ['/v1%2fsearch', '%2F'],
    ['/v1\\search', 'backslash'],
    ['/v1/..%5csearch', 'backslash'],
    ['/v1/search;x=1', 'parameter'],
    ['/v1/search%3Bx', 'parameter'],
    ['/v1/%00', 'control'],
    ['/v1/%0d%0aX', 'control'],
    ['/v1/\u0001', 'percent-encoded'],
    ['/v1/é', 'percent-encoded'],
    ['/v1/%', 'broken'],
    ['/v1/%7', 'broken'],
    ['/v1/%zz', 'broken'],
    ['/v1/%%34%31', 'broken'],
    ['/v1/%252e%252e/x', 'twice'],
    ['/v1/%25%32%65', 'twice'],
    ['/v1/%c0%ae%c0%ae/x', 'UTF-8'],
    ['/v1/%ff', 'UTF-8'],
    ['/a?b', 'query'],
    ['/a#b', 'fragment'],
  ])('refuses %j', (raw, word) => {
    expect(path(raw)).toContain('refused')
    expect(path(raw)).toContain(word)
  })

  it('is idempotent, and leaves no dot segment, no empty segment, no escaped letter and no small escape', () => {
    fc.assert(
      fc.property(rawPath, (raw) => {
        const found = normalizePath(raw)
        if (found.kind === 'refused') return
        expect(normalizePath(found.path)).toEqual(found)
        expect(found.path).not.toMatch(/\/\/|\/\.{1,2}(?:\/|$)|%[0-9A-F]?[a-f]/)
        for (const [, hex = ''] of found.path.matchAll(/%(..)/g)) {
          expect(String.fromCharCode(Number.parseInt(hex, 16))).not.toMatch(/^[\w.~-]$/)
        }
      }),
      { numRuns: 5_000 },
    )
  })

  it('never changes what a server reads in it, the slash at the end included', () => {
    fc.assert(
      fc.property(rawPath, (raw) => {
        const found = normalizePath(raw)
        if (found.kind === 'refused') return
        expect(segmentsOf(found.path)).toEqual(segmentsOf(raw))
        const url = new URL(`http://x${raw.replaceAll(/\/+/g, '/')}`).pathname
        expect(found.path.endsWith('/')).toBe(url.endsWith('/'))
      }),
      { numRuns: 5_000 },
    )
  })

  it('takes time in proportion to the length, whatever the path is', () => {
    for (const part of ['/a', '.', '%2e', '/..', '%', '/.a', '//']) {
      const begun = performance.now()
      normalizePath(`/${part.repeat(64_000 / part.length)}\\`)
      expect(performance.now() - begun).toBeLessThan(500)
    }
  })
})

describe('pathToMatch', () => {
  it('reads an escaped delimiter as the delimiter, so that /v1/%24batch is not cheaper than /v1/$batch', () => {
    expect(pathToMatch('/v1/%24batch')).toBe('/v1/$batch')
    expect(pathToMatch('/%21%24%26%27%28%29%2A%2B%2C%3A%3D%40/%2Fx%25%20%C3%A9')).toBe("/!$&'()*+,:=@/%2Fx%25%20%C3%A9")
  })
})

describe('readOddPath', () => {
  it('has every reading of a path with odd characters: each odd segment without them, and as any text', () => {
    expect(readOddPath('/a/%E8b//c%09/d')).toEqual({
      path: '/a/%E8b/c%09/d',
      readings: ['/a/x/x/d', '/a/b/x/d', '/a/x/c/d', '/a/b/c/d'],
    })
    expect(readOddPath('/caf%c3%a9%E8')?.readings).toEqual(['/x', '/caf%C3%A9'])
    expect(readOddPath('/a/.%09./b')?.readings).toEqual(['/a/x/b', '/b'])
  })
  it('is given up at the third odd segment, whatever is behind it: each costs a thrown exception', () => {
    const decode = vi.spyOn(globalThis, 'decodeURIComponent')
    expect(readOddPath('/%E8'.repeat(8_000))).toBeUndefined()
    expect(decode).toHaveBeenCalledTimes(4)
    decode.mockRestore()
  })
})
