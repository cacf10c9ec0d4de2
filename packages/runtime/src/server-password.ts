import { randomBytes } from 'node:crypto'
import { chmodSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Returns the password of the server whose data is in `dir`, and the file that holds it: created once, readable by its
 * owner only. It has letters, digits, `-` and `_`: it needs no quoting in a URL, a configuration file or a shell.
 */
export function serverPassword(dir: string) {
  const file = join(dir, 'password')
  try {
    const text = readFileSync(file, 'utf8').trim()
    if (!/^[\w-]{20,}$/.test(text))
      throw new Error(`${file} holds no password; delete it, and the next start generates one`)
    chmodSync(file, 0o600)
    return { file, text }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  const text = randomBytes(24).toString('base64url')
  writeFileSync(`${file}.new`, `${text}\n`, { mode: 0o600 })
  renameSync(`${file}.new`, file)
  return { file, text }
}
