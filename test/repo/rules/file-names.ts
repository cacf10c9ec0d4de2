import type { Finding, SourceFile } from './source-file.ts'

const rule = 'file names'

const kebab = /^[a-z0-9]+(?:-[a-z0-9]+)*(?:\.[a-z0-9]+(?:-[a-z0-9]+)*)*$/
/** Names that say nothing; what is in such a file belongs to something. */
const sayNothing = /^(?:utils?|helpers?|common|managers?|misc|shared|stuff)$/
/** Where TypeScript may stand: tsconfig.json reads nothing else, so elsewhere nobody would check it. */
const inScope =
  /^(?:packages\/[\w-]+\/(?:src|web)\/|services\/[\w-]+\/src\/|docs\/(?:src|\.vitepress)\/|infra\/(?:grafana|local\/[\w-]+)\/src\/|examples\/|test\/|[\w.-]+$)/

/** Names that others have fixed. */
const given: readonly RegExp[] = [
  /^(?:LICENSE|[A-Z]+\.md)$/, // such as README.md
  /^\d{4}_[a-z0-9]+(?:_[a-z0-9]+)*\.sql$/, // migrations: a number, then the table
  /^[a-z]+\.Dockerfile$/,
  /^weir-(?:[a-z]+@\.service|\.service\.d)$/, // systemd's templates, and what all units have
  /^(?:Chart\.yaml|NOTES\.txt|_[a-z-]+\.tpl)$/, // Helm's
  /^\.[a-z]+(?:[-.][a-z]+)*$/, // .gitignore
  /^(?:ISSUE_TEMPLATE|pull_request_template\.md)$/, // GitHub's
]

function nameProblem(path: string): string | undefined {
  const parts = path.split('/')
  const odd = parts.find((part) => !kebab.test(part) && !given.some((one) => one.test(part)))
  if (odd !== undefined) return `${odd} is not kebab-case`
  const empty = parts.flatMap((part) => part.split(/[.-]/)).find((word) => sayNothing.test(word))
  if (empty !== undefined) return `${empty} says nothing about what is in it`
  if (!path.endsWith('.ts')) return undefined
  if (parts.at(-1) === 'index.ts') return 'a barrel: import the file that has it'
  return inScope.test(path) ? undefined : 'TypeScript outside every package'
}

/** Files are kebab-case, say the thing or the act, and stand where they are checked. */
export function checkFileNames(tree: readonly SourceFile[]): Finding[] {
  return tree.flatMap(({ path }) => {
    const what = nameProblem(path)
    return what === undefined ? [] : [{ path, line: 0, rule, what }]
  })
}
