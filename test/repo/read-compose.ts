import { parse } from 'yaml'
import { textOf } from './read-tree.ts'

/** What the tests look at of one service of docker-compose.yml. */
export interface ComposeService {
  readonly image: string
  readonly build?: { readonly dockerfile: string; readonly args: Readonly<Record<string, string>> }
  readonly command?: readonly string[]
  readonly environment?: Readonly<Record<string, string | number>>
  readonly ports?: readonly string[]
  readonly volumes?: readonly string[]
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>
  readonly healthcheck?: { readonly test?: readonly string[]; readonly disable?: boolean }
  readonly restart?: string
  readonly profiles?: readonly string[]
  readonly networks?: { readonly default: { readonly ipv4_address: string } }
}

interface ComposeFile {
  readonly services: Readonly<Record<string, ComposeService>>
  readonly volumes: Readonly<Record<string, null>>
}

export const composeFile = 'docker-compose.yml'

/** A file of compose with its anchors filled in. */
export const readCompose = (path: string): ComposeFile => parse(textOf(path), { merge: true })

export const compose = readCompose(composeFile)

export const composeServices: readonly (readonly [string, ComposeService])[] = Object.entries(compose.services)

/**
 * What a variable is set to where nobody has set what it refers to: `${A:-b}` is b, and `${A:?why}` stops the start.
 */
export function valueWithout(text: string | number): { readonly value: string; readonly mustBeGiven: boolean } {
  const reference = /^\$\{[A-Z0-9_]+(:-|:\?)(.*)\}$/.exec(String(text))
  if (reference === null) return { value: String(text), mustBeGiven: false }
  const [, kind, rest = ''] = reference
  return kind === ':-' ? { value: rest, mustBeGiven: false } : { value: '', mustBeGiven: true }
}

/** Every service that has started, or run to its end, before this one. */
export function waitsFor(name: string, { services }: ComposeFile = compose): ReadonlySet<string> {
  const found = new Set<string>()
  const visit = (one: string) => {
    for (const next of Object.keys(services[one]?.depends_on ?? {})) {
      if (!found.has(next)) visit(next)
      found.add(next)
    }
  }
  visit(name)
  return found
}
