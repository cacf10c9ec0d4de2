import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import type { Readable } from 'node:stream'

/** The folder that the launcher fills from infra/pnpm/package-lock.json: it is there before the dependencies are. */
export const toolsFolder = resolve(import.meta.dirname, '../../../../.weir/tools')

interface ZipEntry {
  readonly fileName: string
  readonly externalFileAttributes: number
}

interface Tools {
  readonly 'mvn-artifact-name-parser': { default(name: string): object }
  readonly 'mvn-artifact-url': { default(artifact: object, mirror?: string): Promise<string> }
  readonly yauzl: {
    openPromise(
      path: string,
    ): Promise<{ eachEntry(): AsyncIterable<ZipEntry>; openReadStreamPromise(entry: ZipEntry): Promise<Readable> }>
  }
}

/** A library of that folder. */
export const tool = <Name extends keyof Tools>(name: Name): Tools[Name] =>
  createRequire(resolve(toolsFolder, 'package.json'))(name)
