import { execFile } from 'node:child_process'
import { cp, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { folderForFile } from '../support/opened.ts'

const folder = resolve('infra/systemd')
const install = 'systemd-analyze does not run: apt-get install -y systemd'
const units = ['weir-ingress@', 'weir-metering@', 'weir-alerting@', 'weir-console']

async function systemdAnalyze(...args: string[]): Promise<{ code: number; text: string }> {
  try {
    const { stdout, stderr } = await promisify(execFile)('systemd-analyze', [`--root=${root}`, ...args])
    return { code: 0, text: stdout + stderr }
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number | string; stdout: string; stderr: string }
    if (typeof code !== 'number') throw new Error(install, { cause: error })
    return { code, text: stdout + stderr }
  }
}

const root = await folderForFile('systemd')
const installed = join(root, 'etc/systemd/system')
await cp('/usr/lib/systemd/system', join(root, 'usr/lib/systemd/system'), { recursive: true })
await cp(folder, installed, {
  recursive: true,
  filter: (path) => !/\.(?:env|sysusers\.conf|tmpfiles\.conf)$/.test(path),
})
const node = join(root, 'opt/weir/node_modules/node/bin')
await mkdir(node, { recursive: true })
await writeFile(join(node, 'node'), '', { mode: 0o755 })

const inRoot = (unit: string) => join(root, 'etc/systemd/system', unit)

test.each([...units.map((unit) => `${unit}.service`), 'weir.target'])(
  'systemd reads %s without a word',
  async (unit) => {
    // Documentation is read from this machine, not from the root.
    expect(await systemdAnalyze('verify', '--man=no', inRoot(unit))).toEqual({ code: 0, text: '' })
  },
)

test('A key that systemd does not know, and a program that is not there, are found', async () => {
  const wrong = inRoot('weir-wrong.service')
  await writeFile(wrong, '[Service]\nExecStart=/opt/weir/none\nRestartAlways=yes\n')
  const { text } = await systemdAnalyze('verify', '--man=no', wrong)
  expect(text).toMatch(/Unknown key (?:name )?'RestartAlways'/)
  expect(text).toContain('/opt/weir/none is not executable')
  await rm(wrong)
})

test.each(units)('%s exposes at most 2.0 of 10, and without what all units share more than 8', async (unit) => {
  const name = unit.replace('@', '@1')
  const rate = () => systemdAnalyze('security', '--offline=yes', '--threshold=20', `${name}.service`)
  const { code, text } = await rate()
  expect([code, text.split('\n').findLast((line) => line.includes('Overall'))]).toEqual([
    0,
    expect.stringMatching(/ [01]\.\d OK/),
  ])
  const shared = inRoot('weir-.service.d')
  await rm(shared, { recursive: true })
  expect(await rate()).toMatchObject({ code: 1, text: expect.stringMatching(/level for .*: (?:8|9)\.\d/) })
  await cp(join(folder, 'weir-.service.d'), shared, { recursive: true })
})

test('The user and the folders of the page are made: /etc/weir for all, secrets for root alone', async () => {
  const etc = join(root, 'etc')
  await mkdir(join(etc, 'sysusers.d'))
  await mkdir(join(etc, 'tmpfiles.d'))
  await cp(join(folder, 'weir.sysusers.conf'), join(etc, 'sysusers.d/weir.conf'))
  await cp(join(folder, 'weir.tmpfiles.conf'), join(etc, 'tmpfiles.d/weir.conf'))
  await promisify(execFile)('systemd-sysusers', [`--root=${root}`])
  await promisify(execFile)('systemd-tmpfiles', [`--root=${root}`, '--create', '--prefix=/etc/weir'])
  expect(await readFile(join(etc, 'passwd'), 'utf8')).toMatch(/^weir:.*:\/var\/lib\/weir:\/usr\/sbin\/nologin$/m)
  const modeOf = async (path: string) => ((await stat(join(etc, path))).mode & 0o777).toString(8)
  expect(await modeOf('weir')).toBe('755')
  for (const unit of units) expect(await modeOf(`weir/${unit.replace('@', '')}.secrets`)).toBe('700')
})
