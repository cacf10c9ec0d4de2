import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

export type Authority = Awaited<ReturnType<typeof createAuthority>>

const openssl = (...args: string[]) => promisify(execFile)('openssl', args)
const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'] as const

/** A certificate authority of a test's own, with its files in `dir`. */
export async function createAuthority(dir: string, name = 'authority') {
  const file = (of: string, end: string) => join(dir, `${of}.${end}`)
  const extensions = file(name, 'ext')
  await writeFile(extensions, 'subjectAltName=IP:127.0.0.1,DNS:localhost\n')
  const own = ['-keyout', file(name, 'key'), '-out', file(name, 'crt')]
  await openssl('req', '-x509', ...newKey, ...own, '-subj', `/CN=weir test ${name}`)
  return {
    /** The certificate that clients are given to trust. */
    caFile: file(name, 'crt'),
    /**
     * Signs a certificate for 127.0.0.1 and localhost, valid for 2 days. Repeated with the same name, it replaces the
     * files by new ones.
     */
    async issue(commonName: string, days: number = 2) {
      const request = file(commonName, 'csr')
      const [keyFile, certFile] = [file(commonName, 'key'), file(commonName, 'crt')]
      await openssl('req', ...newKey, '-keyout', keyFile, '-out', request, '-subj', `/CN=${commonName}`)
      const signer = ['-CA', file(name, 'crt'), '-CAkey', file(name, 'key'), '-CAcreateserial']
      await openssl(
        'x509',
        '-req',
        '-in',
        request,
        '-out',
        certFile,
        '-extfile',
        extensions,
        '-days',
        String(days),
        ...signer,
      )
      return { certFile, keyFile }
    },
  }
}
