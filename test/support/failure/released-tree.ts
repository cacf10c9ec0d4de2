import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'

/** Installing what a release depends on takes half a minute, on a busy machine some. */
const installDeadlineMs = 600_000

const git = (...args: readonly string[]) => execFileSync('git', args, { cwd: projectRoot, encoding: 'utf8' }).trim()

/** The version before this one and its commit, the last before package.json's version was raised. Needs no tags. */
function lastRelease(): { version: string; commit: string } {
  const raised = git('log', '-1', '--format=%H', '-G"version":', '--', 'package.json')
  try {
    const commit = git('rev-parse', '--verify', `${raised}^`)
    return { version: JSON.parse(git('show', `${commit}:package.json`)).version, commit }
  } catch (error) {
    throw new Error('this clone does not reach back to the last release: run git fetch --unshallow', { cause: error })
  }
}

/** Checks out the last release into a folder of its own, with what it depends on. */
export function checkOutRelease() {
  const { version, commit } = lastRelease()
  const root = mkdtempSync(join(tmpdir(), `weir-${version}-`))
  const archive = join(root, '..', `weir-${version}-${process.pid}.tar`)
  try {
    git('archive', '--output', archive, commit)
    execFileSync('tar', ['-xf', archive, '-C', root])
  } finally {
    rmSync(archive, { force: true })
  }
  execFileSync(join(root, 'weir'), ['--help'], { stdio: 'pipe', timeout: installDeadlineMs })
  return { version, root, remove: () => rmSync(root, { recursive: true, force: true }) }
}
