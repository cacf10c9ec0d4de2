import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { signAddress, verifyAddress } from './address-token.ts'

const [key, other] = ['a key that is long enough to sign mails', 'another key that is long enough as well']
const who = { subject: 'acme', addressHash: '0123456789ab' }
const token = signAddress([key], 'unsubscribe', who) ?? ''

test('a token is read back under the key that signed it, also while another one replaces that', () => {
  expect(verifyAddress([key], 'unsubscribe', token)).toEqual(who)
  expect(verifyAddress([other, key], 'unsubscribe', token)).toEqual(who)
  expect(verifyAddress([other], 'unsubscribe', token)).toBeUndefined()
  expect(verifyAddress([key], 'confirm', token)).toBeUndefined()
  expect([signAddress([], 'unsubscribe', who), verifyAddress([], 'unsubscribe', token)]).toEqual([undefined, undefined])
})

test.each(['a', '"'])('the longest subject has a token: 255 times %s', (character) => {
  const long = { ...who, subject: character.repeat(255) }
  expect(verifyAddress([key], 'unsubscribe', signAddress([key], 'unsubscribe', long) ?? '')).toEqual(long)
})

test('a token that is changed in any character, cut, or made of another one is none', () => {
  const [payload = '', mac = ''] = token.split('.')
  for (let at = 0; at < token.length; at += 1) {
    const changed = `${token.slice(0, at)}${token[at] === 'A' ? 'z' : 'A'}${token.slice(at + 1)}`
    const bytes = (text: string) => Buffer.from(text.split('.')[1] ?? '', 'base64url').toString('hex')
    // The last character of base64url has bits that count for nothing.
    const isSame = changed.split('.')[0] === payload && bytes(changed) === bytes(token)
    expect([at, verifyAddress([key], 'unsubscribe', changed) === undefined]).toEqual([at, !isSame])
  }
  const bolt = Buffer.from(JSON.stringify(['bolt', who.addressHash])).toString('base64url')
  const bare = createHmac('sha256', key).update(bolt).digest('base64url')
  const texts = ['', '.', payload, `${payload}.`, `.${mac}`, `${bolt}.${mac}`, `${bolt}.${bare}`, `${token}.${mac}`]
  for (const text of [...texts, 'a'.repeat(1_000_000)])
    expect(verifyAddress([key], 'unsubscribe', text)).toBeUndefined()
})
