import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import { readMarkdown } from '../repo/rules/markdown.ts'
import type { AccessRight } from './servers/access-right.ts'

/** Rights by the user that they are for: `weir-` and the process or the command. */
export type RightsOf = ReadonlyMap<string, readonly AccessRight[]>

const isResource = (word: string): word is AccessRight['resource'] => ['Topic', 'Group', 'Cluster'].includes(word)
const path = 'docs/configuration.md'
const document = () => readMarkdown({ path, text: readFileSync(join(projectRoot, path), 'utf8') })

function gather(rows: readonly { readonly user: string; readonly right: AccessRight }[]): RightsOf {
  const byUser = Map.groupBy(rows, ({ user }) => user)
  return new Map([...byUser].map(([user, own]) => [user, own.map(({ right }) => right)]))
}

/** The rows of the table of Kafka's rights in docs/configuration.md. */
export const documentedRights = (): RightsOf =>
  gather(
    document().rows.flatMap(({ cells: [process = '', resource = '', names = '', pattern, operations = ''] }) => {
      if (!isResource(resource) || (pattern !== 'literal' && pattern !== 'prefixed')) return []
      const user = `weir-${process
        .replaceAll('`', '')
        .replace(/^weir /, '')
        .replaceAll(' ', '-')}`
      return [...names.matchAll(/`([^`]+)`/g)].flatMap(([, name = '']) =>
        operations.split(', ').map((operation) => ({ user, right: { resource, name, pattern, operation } })),
      )
    }),
  )

/** What the commands beside that table grant. */
export const commandedRights = (): RightsOf =>
  gather(
    document().codeLines.flatMap(({ text }) => {
      const [, user = '', flags = ''] = /^allow (\S+) (.*)$/.exec(text) ?? []
      const values = (flag: string) => [...flags.matchAll(new RegExp(`--${flag} (\\S+)`, 'g'))].map(([, at = '']) => at)
      const pattern = values('resource-pattern-type').includes('prefixed')
        ? ('prefixed' as const)
        : ('literal' as const)
      const resources = (['Topic', 'Group', 'Cluster'] as const).flatMap((resource) =>
        values(resource.toLowerCase()).map((name) => ({ resource, name, pattern })),
      )
      return resources.flatMap((one) =>
        values('operation').map((operation) => ({ user, right: { ...one, operation } })),
      )
    }),
  )
