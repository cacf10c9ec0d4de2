import { createHash, randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { WeirError } from '@weir/core/errors.ts'

/** Replaces a file whole, so that a reader sees the old or the new one. */
function replaceFile(path: string, text: string): void {
  writeFileSync(`${path}.new`, text, { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

/** Returns the SHA-256 of a text, in hex. */
export const sha256Hex = (text: string): string => createHash('sha256').update(text).digest('hex')

/** The file of the secrets, in the data directory. */
export const secretsFile = 'secrets.json'

function makeSecrets() {
  const random = () => randomBytes(24).toString('base64url')
  return {
    demoKey: `weir_demo_${random()}`,
    demoSmallKey: `weir_small_${random()}`,
    adminToken: `weir_admin_${random()}`,
    portalKey: random(),
    unsubscribeKey: random(),
    webhookSecret: `whsec_${randomBytes(32).toString('base64')}`,
  }
}

/** The secrets of the demo and its admin token, made once per data directory and readable by its owner only. */
export type Secrets = ReturnType<typeof makeSecrets>

/** A file of an earlier version gets the secrets that it has not yet. */
function readOrMakeSecrets(file: string): Secrets {
  const known = readSecrets(file)
  const secrets = { ...makeSecrets(), ...known }
  if (Object.keys(secrets).some((name) => !Object.hasOwn(known, name))) {
    replaceFile(file, `${JSON.stringify(secrets, null, 2)}\n`)
  }
  return secrets
}

function readSecrets(file: string): Partial<Secrets> {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return {}
  }
}

function holder(stateFile: string): string {
  try {
    return ` by process ${JSON.parse(readFileSync(stateFile, 'utf8')).launcher}`
  } catch {
    return ''
  }
}

/** Usage, logs and secrets are the owner's alone; a folder of an earlier version, or of `mkdir`, was open to all. */
function closeToOthers(dir: string): void {
  const { mode, uid } = statSync(dir)
  if ((mode & stickyBit) !== 0) throw new Error('all users share this folder; give one of your own')
  // Root may write there, but that user may have made its contents, the secrets included.
  if (uid !== process.getuid?.())
    throw new Error(`it belongs to user ${uid}; start as that user, or give a folder of your own`)
  chmodSync(dir, 0o700)
}

/** The mode of a folder that all users share, such as `/tmp`: closing it would lock the others out. */
const stickyBit = 0o1000

/**
 * Takes a data directory for this process alone. The lock is SQLite's, held by the kernel for as long as the process
 * lives: no stale file can keep the next start out, and no pid is ever trusted.
 */
export function openDataDir(dir: string) {
  const stateFile = join(dir, 'state.json')
  try {
    mkdirSync(join(dir, 'logs'), { recursive: true, mode: 0o700 })
    closeToOthers(dir)
  } catch (error) {
    throw new WeirError('DATA_DIR_UNUSABLE', `The data directory ${dir} cannot be used: ${String(error)}`, error)
  }
  const lock = new DatabaseSync(join(dir, 'lock.db'))
  try {
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
  } catch (error) {
    const message = `The data directory ${dir} is in use${holder(stateFile)}. Stop that one, or choose another with --data DIR.`
    throw new WeirError('DATA_DIR_IN_USE', message, error)
  }
  return {
    dir,
    /** The file named by `state` in the ready line. */
    stateFile,
    secrets: readOrMakeSecrets(join(dir, secretsFile)),
    writeState: (state: object) => replaceFile(stateFile, `${JSON.stringify(state)}\n`),
    /** Releases the lock for the next process. The kernel does the same when this process dies. */
    release: () => lock.close(),
  }
}

/** A data directory that this process has locked. */
export type DataDir = ReturnType<typeof openDataDir>
