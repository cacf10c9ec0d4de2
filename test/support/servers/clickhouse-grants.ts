import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import type { ClickhouseProxy, SentStatement } from './clickhouse-proxy.ts'

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

/** Only a statement that names the table of a grant can need it; one that does all the same makes it superfluous. */
export const isAbout = (text: string, grant: string): boolean => {
  const table = / ON [`\w]+\.`?(\w+)`?$/.exec(grant)?.[1]
  return table === undefined || text.includes(table)
}

/** Grants that are taken away at once, since no statement is about two of them: the engine starts once for all. */
export function takenAtOnce(grants: readonly string[], statements: readonly SentStatement[]): readonly string[][] {
  const rounds: string[][] = []
  for (const grant of grants) {
    const about = statements.filter(({ text }) => isAbout(text, grant))
    const isApart = (round: string[]) => !about.some(({ text }) => round.some((other) => isAbout(text, other)))
    const round = rounds.find(isApart)
    if (round === undefined) rounds.push([grant])
    else round.push(grant)
  }
  return rounds
}

/** Without the right to see views ClickHouse leaves them out. */
export async function showsViews(secure: ClickhouseProxy, statements: readonly SentStatement[]): Promise<boolean> {
  const list = statements.find(({ text }) => text.includes('as_select'))
  return list !== undefined && (await secure.repeat(list)).includes('usage_15m_mv')
}
