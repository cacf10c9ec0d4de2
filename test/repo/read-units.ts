import { textOf, tree } from './read-tree.ts'

const folder = 'infra/systemd'
const common = textOf(`${folder}/weir-.service.d/sandbox.conf`)

/** One of Weir's services as systemd runs it. */
export interface Unit {
  /** The file's name: `weir-ingress@.service`. */
  readonly name: string
  readonly service: string
  /** All values of a key, in order; those that all units share come last, as systemd reads them. */
  readonly valuesOf: (key: string) => readonly string[]
  /** What the unit and its environment file set, as the first instance has it. */
  readonly environment: ReadonlyMap<string, string>
}

const lines = (text: string) => text.split('\n').filter((line) => /^\w+=/.test(line))
const pair = (line: string) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)] as const

/** The text with the values of its specifiers, as systemd has them for the first instance. */
const filledIn = (text: string, prefix: string) =>
  text
    .replaceAll('%i', '1')
    .replaceAll('%p', prefix)
    .replaceAll('%S', '/var/lib')
    .replaceAll('%d', '/run/credentials/unit')

function readUnit(path: string): Unit {
  const name = path.slice(folder.length + 1)
  const prefix = name.replace(/@?\.service$/, '')
  const settings = [...lines(textOf(path)), ...lines(common)].map(pair)
  const valuesOf = (key: string) => settings.flatMap(([one, value]) => (one === key ? [filledIn(value, prefix)] : []))
  const [file = ''] = valuesOf('EnvironmentFile')
  const given = lines(textOf(file.replace('/etc/weir', folder))).map(pair)
  const environment = new Map([...valuesOf('Environment').map(pair), ...given])
  return { name, service: prefix.replace('weir-', ''), valuesOf, environment }
}

/** The units of all services. */
export const units: readonly Unit[] = tree
  .filter(({ path }) => path.startsWith(`${folder}/`) && path.endsWith('.service'))
  .map(({ path }) => readUnit(path))
