import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Variables } from '@weir/runtime/read-config.ts'
import { root, tree } from './read-tree.ts'

/** The environment variables of one service. */
export interface ServiceVariables {
  readonly service: string
  readonly variables: Variables
}

const isVariables = (value: unknown): value is Variables =>
  typeof value === 'object' && value !== null && Object.values(value).every((one) => 'name' in one && 'parse' in one)

/**
 * What every service declares in its config.ts, loaded as the service itself loads it; services in order of their ops
 * ports.
 */
export async function readConfigs(): Promise<ServiceVariables[]> {
  const files = tree.filter(({ path }) => /^services\/[^/]+\/src\/config\.ts$/.test(path))
  const configs = await Promise.all(
    files.map(async ({ path }) => {
      const module: Record<string, unknown> = await import(pathToFileURL(join(root, path)).href)
      const [variables, more] = Object.values(module).filter(isVariables)
      if (variables === undefined || more !== undefined) throw new Error(`${path} must export one set of variables`)
      return { service: path.split('/')[1] ?? '', variables }
    }),
  )
  const opsPort = ({ variables }: ServiceVariables) =>
    Number(Object.values(variables).find(({ name }) => name === 'WEIR_OPS_PORT')?.fallback)
  return configs.toSorted((a, b) => opsPort(a) - opsPort(b))
}
