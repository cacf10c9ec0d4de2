import { followFiles } from './follow-files.ts'
import { readSecretOf, type Variable } from './read-config.ts'
import type { Run } from './run.ts'
import type { Secret } from './secret.ts'
import type { Service } from './start-service.ts'

/**
 * Returns a function that returns the current secret, at most a second old, without reading its file each time. While
 * the file cannot be used, the last good text stays in use, with a warning in /readyz and the log.
 */
export async function ownSecret(
  secret: Secret,
  variable: Variable<Secret>,
  { run, log, checkReady }: Pick<Service, 'log' | 'checkReady'> & { readonly run: Pick<Run, 'own'> },
): Promise<() => string> {
  const { file } = secret
  let { text } = secret
  if (file === undefined) return () => text
  let warning: string | undefined
  const read = () => {
    const found = readSecretOf(file, variable)
    const problem = 'problem' in found ? `${found.problem}; the previous value stays in use` : undefined
    if (problem !== undefined && problem !== warning) log.warn(problem)
    warning = problem
    if (!('value' in found) || found.value.text === text) return
    text = found.value.text
    log.info(`${secret.variable} names a file with a new text, which is in use now`)
  }
  await run.own(variable.name, followFiles([file], read), (stop) => stop())
  checkReady(variable.name, () => (warning === undefined ? undefined : { warning }))
  return () => text
}
