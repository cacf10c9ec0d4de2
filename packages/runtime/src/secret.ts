import { readSmallFile } from './read-small-file.ts'

/** A secret of the configuration. Plain data, so that a thread can be started with it. */
export interface Secret {
  /** Of the variable, for messages; ends in `_FILE` where a file is named. */
  readonly variable: string
  /** The file that holds it; undefined where the variable itself does. */
  readonly file: string | undefined
  /** As it was at the start; empty for none. Use `readSecret` for what it is now. */
  readonly text: string
}

/**
 * The text of a secret's file; tools that write one end it with a line feed. An empty one is about to be written, and
 * no secret.
 */
export function readSecretFile(file: string): string {
  const text = readSmallFile(file).replace(/\r?\n$/, '')
  if (text === '') throw new Error(`${file} is empty`)
  return text
}

/**
 * A secret as it is now: for every new connection, so that one that was replaced is used without a restart. Throws a
 * sentence that names the variable when its file cannot be read.
 */
export function readSecret({ file, text, variable }: Secret): string {
  if (file === undefined) return text
  try {
    return readSecretFile(file)
  } catch (error) {
    throw new Error(`${variable} names a file that cannot be read (${(error as Error).message})`)
  }
}
