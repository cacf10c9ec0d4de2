import { type ClickhouseServer, clickhouseVariables } from '@weir/clickhouse/variables.ts'
import { type Environment, readConfig } from '@weir/runtime/read-config.ts'

/** Whether the environment names a ClickHouse. */
export const isClickhouseGiven = (environment: Environment): boolean =>
  [clickhouseVariables.clickhouseUrl.name].some((name) => environment[name] || environment[`${name}_FILE`])

/** Returns the variables for the ClickHouse of a `weir up`: those that a person set for another one do not apply. */
export function clickhouseVariablesFor(
  environment: Environment,
  ownAddress: string | undefined,
): Record<string, string> {
  if (ownAddress === undefined || isClickhouseGiven(environment)) return {}
  const { clickhouseUrl, clickhouseDatabase: _, ...others } = clickhouseVariables
  const names = Object.values(others).flatMap(({ name }) => [name, `${name}_FILE`])
  return { ...Object.fromEntries(names.map((name) => [name, ''])), [clickhouseUrl.name]: ownAddress }
}

/** The ClickHouse of the environment, else that of a `weir up`. Throws CONFIG_INVALID where there is neither. */
export const findClickhouse = (environment: Environment, ownAddress?: string): ClickhouseServer =>
  readConfig(clickhouseVariables, { ...environment, ...clickhouseVariablesFor(environment, ownAddress) })
