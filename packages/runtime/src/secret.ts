import { readSmallFile } from './read-small-file.ts'

/** A secret of the configuration. Plain data, so that a thread can be started with it. */
export interface Secret {
  /** Name of the variable, for messages; it ends in `_FILE` if that names a file. */
  readonly variable: string
  /** The file that holds the secret; undefined if the variable itself does. */
  readonly file: string | undefined
  /** The secret at the start; empty for none. `readSecret` returns the current one. */
  readonly text: string
}

/**
 * Returns the text of a secret's file; tools end it with a line feed. Throws if it is empty: a tool is about to write
 * it.
 */
export function readSecretFile(file: string): string {
  const text = readSmallFile(file).replace(/\r?\n$/, '')
  if (text === '') throw new Error(`${file} is empty`)
  return text
}

/**
 * Returns the current secret, for every new connection: a replaced one is used without a restart. Throws a sentence
 * that names the variable if its file cannot be read.
 */
export function readSecret({ file, text, variable }: Secret): string {
  if (file === undefined) return text
  try {
    return readSecretFile(file)
  } catch (error) {
    throw new Error(`${variable} names a file that cannot be read (${(error as Error).message})`)
  }
}
