import { mkdir, readdir, rm, symlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { findProgram } from '@weir/local-programs/find-program.ts'
import type { FetchOptions } from '@weir/local-programs/program.ts'
import { binFolder } from './environment.ts'
import { type TestProgram, testPrograms } from './test-programs.ts'

const folder = dirname(binFolder)

/** Links a private copy there, with what its package has beside it; programs of the PATH need no link. */
async function link(program: TestProgram, path: string): Promise<void> {
  if (!path.startsWith(`${folder}/`)) return
  const beside = dirname(path)
  const names = program.path.startsWith('bin/') ? await readdir(beside) : [basename(path)]
  for (const name of names) {
    await rm(join(binFolder, name), { force: true })
    await symlink(join(beside, name), join(binFolder, name))
  }
}

/** A program that the tests will not find. */
export interface MissingProgram {
  readonly program: TestProgram
  /** What was found, and what to do. */
  readonly message: string
}

/** Finds or fetches every program of the tests; returns those that are missing, so that a run can name all at once. */
export async function providePrograms(options: FetchOptions): Promise<readonly MissingProgram[]> {
  await mkdir(binFolder, { recursive: true })
  const found = await Promise.allSettled(testPrograms.map(async (one) => link(one, await findProgram(one, options))))
  return found.flatMap((one, index) => {
    const program = testPrograms[index]
    return one.status === 'fulfilled' || program === undefined ? [] : [{ program, message: String(one.reason.message) }]
  })
}
