import type { Environment } from './read-config.ts'
import { readSecretFile } from './secret.ts'

/** Reads a variable or its file, empty if unreadable, with the place to name in a message and how to fix it. */
export function readNamedSecret(environment: Environment, name: string) {
  const file = environment[`${name}_FILE`]
  if (!file) return { text: environment[name] ?? '', where: name, remedy: 'set it and start again' }
  if (environment[name]) return { text: '', where: `${name} or ${name}_FILE`, remedy: 'unset one and start again' }
  const where = `the file of ${name}_FILE`
  try {
    return { text: readSecretFile(file), where, remedy: 'write it again' }
  } catch (error) {
    return { text: '', where, remedy: `it cannot be read (${(error as Error).message})` }
  }
}
