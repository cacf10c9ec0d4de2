import type { Variables } from '@weir/runtime/read-config.ts'

/**
 * What is wrong with variables that a file of a deployment gives to a service: those that it does not read, that it
 * must have and has not, and values that it does not accept.
 */
export function environmentProblems(
  environment: ReadonlyMap<string, string>,
  variables: Variables,
  others: readonly string[] = [],
): string[] {
  const declared = Object.values(variables)
  const isKnown = (name: string) =>
    others.includes(name) ||
    declared.some((one) => name === one.name || (one.isSecret === true && name === `${one.name}_FILE`))
  const isGiven = (name: string) => environment.has(name) || environment.has(`${name}_FILE`)
  return [
    ...[...environment.keys()].filter((name) => !isKnown(name)).map((name) => `nothing reads ${name}`),
    ...declared
      .filter(({ name, fallback }) => fallback === undefined && !isGiven(name))
      .map(({ name }) => `${name} is not set`),
    ...declared.flatMap(({ name, parse }) => {
      const value = environment.get(name)
      const parsed = value === undefined || value === '' ? undefined : parse(value)
      return parsed !== undefined && 'problem' in parsed ? [`${name} ${parsed.problem}`] : []
    }),
  ]
}
