import { expect, test } from 'vitest'
import { buildSecret } from '../support/docker/engine.ts'
import { docker, openShell } from '../support/docker/tier.ts'

test.each(['ingress', 'metering', 'alerting', 'console', 'cli'])(
  'the image of %s runs as node, and no layer of it has a secret, a test or the history',
  async (service) => {
    const image = `weir-${service}`
    const [config] = JSON.parse(await docker('image', 'inspect', image))
    expect(config.Config.User).toBe('node')
    const names = ['.git', '.npmrc', '.env*', '*.test.ts'].map((name) => `-name '${name}'`).join(' -o ')
    const script = `find / -xdev \\( ${names} \\) -not -path '*/node_modules/*' -not -path '/proc/*'; du -sm /weir | cut -f1`
    const found = (await docker('run', '--rm', '--entrypoint', 'sh', image, '-c', script)).trim().split('\n')
    expect(found).toEqual([expect.stringMatching(/^\d+$/)])
    // All layers with their files, and how each was made.
    const shell = openShell()
    const count = await shell.run(`docker save ${image} | { grep -acF ${buildSecret} || true; }`, 120_000)
    shell.close()
    expect(count.trim()).toBe('0')
    process.stdout.write(`${image}: ${Math.round(config.Size / 1e6)} MB, of it /weir ${found[0]} MB\n`)
  },
)
