import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import type { SentStatement } from './clickhouse-proxy.ts'

/** Equal for statements that differ in their values alone. */
export const formOf = ({ text }: SentStatement) =>
  text.replaceAll(/'(?:[^'\\]|\\.)*'|\b\d+\b/g, '').replaceAll(/\((?:, )+\)/g, '()')

/** What docs/configuration.md grants in a database, by user: `SELECT ON DATABASE.decisions` and so on. */
export async function documentedGrants(database: string): Promise<Map<string, string[]>> {
  const page = await readFile(join(projectRoot, 'docs/configuration.md'), 'utf8')
  const byUser = new Map<string, string[]>()
  for (const [, list = '', user = ''] of page.matchAll(/`GRANT (.+) TO (\w+)`/g)) {
    const grants = byUser.get(user) ?? []
    for (const [, rights = '', on = ''] of list.matchAll(/([A-Z, ]+) ON ([\w.*]+)/g)) {
      const object = on.replace(/^weir\./, `${database}.`)
      grants.push(...rights.split(',').flatMap((one) => (one.trim() === '' ? [] : [`${one.trim()} ON ${object}`])))
    }
    byUser.set(user, grants)
  }
  return byUser
}
