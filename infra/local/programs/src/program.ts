import { accessSync, constants } from 'node:fs'

/** A slow step for the person who waits: what is fetched, and how far that is. */
export type Tell = (what: string, bytes: number, bytesAll: number) => void

/** Where a program comes from. */
export interface Source {
  readonly bytes: number
  /**
   * Brings it into a new folder, which then gets the name `home`. Rejects at the first byte that is not the pinned one,
   * and names the file.
   */
  fill(folder: string, options: FetchOptions, home: string): Promise<void>
}

/** What a fetch needs of its process. */
export interface FetchOptions {
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly tell: Tell
}

/** A program that Weir or its tests run: where it may be found, in this order, and how people install it. */
export interface Program {
  /** In messages, with its version: `Java 21`. */
  readonly label: string
  /** The folder of the private copy below `.weir/programs`, with its version. */
  readonly folder: string
  /** Its path in that folder. */
  readonly path: string
  /** Looked for in `$JAVA_HOME/bin` and on the PATH; it must run, and be new enough. */
  readonly onPath?: {
    readonly names: readonly string[]
    readonly home?: string
    /** Asks for its version, which is the first two numbers that it prints. */
    readonly args: readonly string[]
    readonly oldest: readonly [major: number, minor: number]
  }
  /** Undefined where there is none to fetch for this machine. */
  readonly source?: Source
  /** The packages that have it, by the program that installs them. */
  readonly packages: Readonly<Partial<Record<Manager, string>>>
}

const installs = {
  'apt-get': 'apt-get install -y',
  dnf: 'dnf install -y',
  apk: 'apk add',
  brew: 'brew install',
} as const

type Manager = keyof typeof installs

const folders = ['/usr/bin', '/sbin', '/opt/homebrew/bin', '/usr/local/bin']

function isThere(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** How to install a program here, by the package manager of this machine; empty for one that no package has. */
export function installLine({ label, packages }: Program): string {
  const managers = Object.keys(installs) as Manager[]
  const own = managers.find((name) => packages[name] && folders.some((folder) => isThere(`${folder}/${name}`)))
  if (Object.keys(packages).length === 0) return ''
  return own === undefined ? `install ${label}` : `${installs[own]} ${packages[own]}`
}

/** `linux-x64`, or `linux-x64-musl` where programs made for glibc do not run. */
export function platform(): string {
  const own = `${process.platform}-${process.arch}`
  if (process.platform !== 'linux') return own
  // Without the network, the names of all connections are not asked for.
  const report = Object.assign(process.report, { excludeNetwork: true }).getReport()
  const { header } = report as { header: { glibcVersionRuntime?: string } }
  return header.glibcVersionRuntime === undefined ? `${own}-musl` : own
}
