import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'

/** Installing what a release depends on takes half a minute, on a busy machine some. */
const installDeadlineMs = 600_000

const git = (...args: readonly string[]) => execFileSync('git', args, { cwd: projectRoot, encoding: 'utf8' }).trim()

/** The version that was released last before this commit. Throws if the clone has no tags. */
function lastRelease(): string {
  try {
    return git('describe', '--tags', '--abbrev=0', '--match', 'v*')
  } catch (error) {
    throw new Error('this clone has no tag of a release: run git fetch --tags', { cause: error })
  }
}

/** Checks out the last release into a folder of its own, with what it depends on. */
export function checkOutRelease() {
  const version = lastRelease()
  const root = mkdtempSync(join(tmpdir(), `weir-${version}-`))
  const archive = join(root, '..', `weir-${version}-${process.pid}.tar`)
  try {
    git('archive', '--output', archive, version)
    execFileSync('tar', ['-xf', archive, '-C', root])
  } finally {
    rmSync(archive, { force: true })
  }
  execFileSync(join(root, 'weir'), ['--help'], { stdio: 'pipe', timeout: installDeadlineMs })
  return { version, root, remove: () => rmSync(root, { recursive: true, force: true }) }
}
