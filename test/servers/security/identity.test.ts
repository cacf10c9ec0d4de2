import { inspect } from 'node:util'
import { exportSPKI, generateKeyPair, type JWTPayload } from 'jose'
import { describe, expect, test } from 'vitest'
import { countAttempts } from '../../support/count-attempts.ts'
import { openIdentity } from '../identity/open-identity.ts'
import { type Issuer, openIssuer } from '../identity/open-issuer.ts'

describe('a token that is not right', () => {
  countAttempts(
    'JSON web tokens',
    'a 401, whatever weaker credential comes with it; keys are fetched from the issuer only',
  )

  const base64 = (value: unknown) =>
    Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
  interface At {
    readonly issuer: Issuer
    readonly nowMs: number
    /** A right one, in its parts. */
    readonly parts: readonly [string, string, string]
  }
  type Forge = (at: At) => string | Promise<string>
  const header =
    (value: object | string): Forge =>
    ({ parts: [, claims, signature] }) =>
      `${base64(value)}.${claims}.${signature}`
  const signed =
    (claims: Record<string, unknown>, more: Record<string, unknown> = {}): Forge =>
    ({ issuer, nowMs }) =>
      issuer.token(nowMs, { claims: claims as JWTPayload, header: more })
  const byOther =
    (more: Record<string, unknown>): Forge =>
    async ({ issuer, nowMs }) =>
      issuer.token(nowMs, { key: (await generateKeyPair('RS256')).privateKey, header: more })
  const byHmac =
    (alg: string, secret: (issuer: Issuer, spki: string) => string): Forge =>
    async ({ issuer, nowMs }) => {
      const publicKey = issuer.publicKey()
      const spki = publicKey === undefined ? '' : await exportSPKI(publicKey)
      return issuer.token(nowMs, { key: new TextEncoder().encode(secret(issuer, spki).padEnd(64)), header: { alg } })
    }
  const whole = ({ parts }: At) => parts.join('.')

  const forged: Readonly<Record<string, Forge>> = {
    ...Object.fromEntries(
      ['', 'RS256 ', ...'none None NONE nOnE rs256 RS512 PS256 ES256 EdDSA HS256 dir A128KW'.split(' ')].flatMap(
        (alg): [string, Forge][] => [
          [`alg ${alg}, signed`, header({ alg })],
          [`alg ${alg}, not signed`, ({ parts }) => `${base64({ alg })}.${parts[1]}.`],
        ],
      ),
    ),
    ...Object.fromEntries(
      [7, null, true, ['RS256'], { RS256: 1 }].map((alg) => [
        `alg ${JSON.stringify(alg)}`,
        header({ alg, kid: 'key 0' }),
      ]),
    ),
    'alg twice': header('{"alg":"none","alg":"RS256"}'),
    'alg in another case': header({ ALG: 'RS256' }),
    ...Object.fromEntries(
      ['HS256', 'HS384', 'HS512'].flatMap((alg): [string, Forge][] => [
        [`${alg} with the public key`, byHmac(alg, (_, spki) => spki)],
        [`${alg} with the key set`, byHmac(alg, ({ keys }) => JSON.stringify(keys[0]))],
        [`${alg} with the modulus`, byHmac(alg, ({ keys }) => keys[0]?.n ?? '')],
      ]),
    ),
    ...Object.fromEntries(
      [
        '../../../../dev/null',
        "' OR 1=1 --",
        '__proto__',
        'constructor',
        '',
        'https://id.example.com/keys',
        'a'.repeat(4_000),
      ].map((kid): [string, Forge] => [`a foreign key under the id ${kid.slice(0, 40)}`, byOther({ kid })]),
    ),
    'a foreign key under the right id': byOther({}),
    'a foreign key and jku': byOther({ jku: 'https://id.example.com/keys' }),
    'a foreign key and x5u': byOther({ x5u: 'https://id.example.com/cert', x5c: ['AAAA'] }),
    'a foreign key that it brings along': byOther({ jwk: { kty: 'RSA', n: 'AAAA', e: 'AQAB' } }),
    'crit of nothing': header({ alg: 'RS256', kid: 'key 0', crit: [] }),
    'crit of an unknown': header({ alg: 'RS256', kid: 'key 0', crit: ['x'], x: 1 }),
    'b64 false': header({ alg: 'RS256', kid: 'key 0', b64: false, crit: ['b64'] }),
    ...Object.fromEntries(
      [
        ...[0, -1, '9999999999', null, [9_999_999_999], true, {}].map((exp) => ({ exp })),
        ...[9_999_999_999, '0', null, []].map((nbf) => ({ nbf })),
        ...['API', 'api ', ['other'], [], null, 7, { api: 1 }].map((aud) => ({ aud })),
        ...['https://id.example.com', null, 7, [], '', '__proto__'].map((iss) => ({ iss })),
        ...[7, null, ['acme'], { id: 'acme' }, '', ' acme', 'acme\n', 'ac\0me', 'a'.repeat(256)].map((sub) => ({
          sub,
        })),
        ...['ip:127.0.0.1', '_unauthenticated', 'a b '].map((sub) => ({ sub })),
        { sub: 'größe\u2028' },
        { pad: 'a'.repeat(9_000) },
        ...['exp', 'aud', 'iss', 'sub'].map((missing) => ({ [missing]: undefined })),
      ].map((claims: Record<string, unknown>): [string, Forge] => [
        `signed, with ${inspect(claims).slice(0, 60)}`,
        signed(claims),
      ]),
    ),
    'signed, ended for longer than clocks differ': ({ issuer, nowMs }) =>
      issuer.token(nowMs, { claims: { exp: nowMs / 1_000 - 6 } }),
    'signed, of longer ahead than clocks differ': ({ issuer, nowMs }) =>
      issuer.token(nowMs, { claims: { nbf: nowMs / 1_000 + 6 } }),
    'an issuer with a slash': ({ issuer, nowMs }) => issuer.token(nowMs, { claims: { iss: `${issuer.url}/` } }),
    'an issuer in capitals': ({ issuer, nowMs }) => issuer.token(nowMs, { claims: { iss: issuer.url.toUpperCase() } }),
    'a signature that was cut': (at) => whole(at).slice(0, -4),
    'a signature that goes on': (at) => `${whole(at)}AAAA`,
    'a signature of another token': async (at) =>
      `${at.parts[0]}.${at.parts[1]}.${(await at.issuer.token(at.nowMs, { claims: { sub: 'other' } })).split('.')[2]}`,
    'claims that were changed': ({ parts: [head, claims, signature] }) =>
      `${head}.${base64({ ...JSON.parse(Buffer.from(claims, 'base64url').toString()), sub: 'globex' })}.${signature}`,
    'no signature': ({ parts: [head, claims] }) => `${head}.${claims}.`,
    'two parts': ({ parts: [head, claims] }) => `${head}.${claims}`,
    'four parts': (at) => `${whole(at)}.AAAA`,
    'five parts, as an encrypted one': (at) => `${whole(at)}.AAAA.AAAA`,
    'two in one': (at) => `${whole(at)}, ${whole(at)}`,
    'blanks within': ({ parts }) => parts.join('. '),
    'claims that are a list': ({ parts: [head, , signature] }) => `${head}.${base64([1])}.${signature}`,
    'claims that are a text': ({ parts: [head, , signature] }) => `${head}.${base64('acme')}.${signature}`,
    'a head that is no JSON': header('{"alg":'),
    'a head that is a list': header(['RS256']),
    'dots alone': () => '..',
    'bytes beyond ASCII': ({ parts: [head, claims] }) => `${head}\xe9.${claims}.AA`,
  }

  test.each(Object.keys(forged))('%s', async (name) => {
    const issuer = await openIssuer()
    const entry = `{ issuer: "${issuer.url}", jwksUrl: "${issuer.jwksUrl}", audience: api, allowPrivate: true, plan: free }`
    const trusted = 'trustedHeaders: { from: [127.0.0.1], subject: x-user, plan: free }, anonymous: free'
    const { ask, time } = await openIdentity(`{ jwt: [${entry}], ${trusted} }`)
    const right = await issuer.token(time.ms)
    const [head = '', claims = '', signature = ''] = right.split('.')
    const token = await forged[name]?.({ issuer, nowMs: time.ms, parts: [head, claims, signature] })
    const { who } = await ask({ headers: { authorization: `Bearer ${token}`, 'x-user': 'partner' } })
    expect(who).toBe('unauthenticated')
    expect((await ask({ headers: { authorization: `Bearer ${right}` } })).who).toBe('acme on pro')
    expect(issuer.state.asked).toBeLessThanOrEqual(2)
  })
})
