import { isLoopback } from './loopback.ts'
import type { Variable } from './read-config.ts'

/** Where browsers and links in mail find the console; a cookie is Secure there, so that it must be https. */
export const consoleUrlVariable: Variable<URL | undefined> = {
  name: 'WEIR_CONSOLE_PUBLIC_URL',
  about:
    'address of the console for browsers and links: https://weir.example.com; empty: this machine’s browsers alone',
  fallback: '',
  parse: (value) => {
    if (value === '') return { value: undefined }
    const url = URL.parse(value)
    const isBare = url !== null && url.href === `${url.origin}/` && url.origin !== 'null'
    if (isBare && (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname))))
      return { value: url }
    return { problem: 'must be https://HOST without a path; http is allowed only on loopback' }
  },
}
