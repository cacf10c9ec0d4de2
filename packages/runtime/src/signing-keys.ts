import { secret, text, type Variable } from './read-config.ts'

/** As long as an HMAC-SHA-256 is, and as RFC 7518 asks for. */
const keyBytesMin = 32

/** The keys in the text of a variable: none, one, or two keys separated by a comma. The first signs, all verify. */
export const signingKeysOf = (keys: string): readonly string[] => (keys === '' ? [] : keys.split(','))

/** Declares a variable of keys that sign; empty is none, and right. */
export const signingKey = (named: Pick<Variable<string>, 'name' | 'about'>) =>
  secret({
    ...text({ ...named, fallback: '' }),
    parse: (value) => {
      const keys = signingKeysOf(value)
      if (keys.length <= 2 && keys.every((key) => Buffer.byteLength(key) >= keyBytesMin)) return { value }
      return { problem: `must be one key of at least ${keyBytesMin} characters, or two keys separated by a comma` }
    },
  })

/** The keys of links that unsubscribe: alerting signs with them, and consoles verify. */
export const unsubscribeKeyVariable = signingKey({
  name: 'WEIR_UNSUBSCRIBE_KEY',
  about: 'key that signs unsubscribe links in mail: at least 32 characters',
})
