import { spawnSync } from 'node:child_process'

/** Returns what `promtool check metrics` (of Debian's package prometheus) finds wrong in a page; '' for nothing. */
export function checkMetrics(page: string): string {
  const { status, error, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
    input: page,
    encoding: 'utf8',
  })
  if (error !== undefined) throw new Error('promtool does not run: apt-get install -y prometheus', { cause: error })
  return `${stdout}${stderr}` || (status === 0 ? '' : `exit code ${status}`)
}
