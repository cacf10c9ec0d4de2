import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { adminTokenVariable } from './admin-token.ts'
import { ownSecret } from './live-secret.ts'
import { createLogger } from './logger.ts'
import type { ReadinessCheck } from './ops-server.ts'
import { readConfig } from './read-config.ts'
import type { Run } from './run.ts'

test('a secret follows its file; while that is unreadable or malformed the last good one stays in use, and a warning names the variable', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'weir-live-secret-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  const file = join(dir, 'hash')
  const [first, second, third] = ['a'.repeat(64), 'b'.repeat(64), 'c'.repeat(64)] as const
  writeFileSync(file, `${first}\n`)
  const { hash } = readConfig({ hash: adminTokenVariable }, { WEIR_ADMIN_TOKEN_SHA256_FILE: file })
  const own: Run['own'] = async (_, thing, close) => {
    const opened = await thing
    onTestFinished(() => void close(opened))
    return opened
  }
  let check: ReadinessCheck = () => 'none'
  const current = await ownSecret(hash, adminTokenVariable, {
    log: createLogger('test', 'silent'),
    run: { own },
    checkReady: (_, one) => {
      check = one
    },
  })
  const becomes = (text: string, warning: unknown) =>
    expect.poll(async () => [current(), await check()], { timeout: 10_000 }).toEqual([text, warning])
  const warningOf = (what: string) => ({
    warning: expect.stringContaining(`WEIR_ADMIN_TOKEN_SHA256_FILE names a file ${what}`),
  })

  expect(current()).toBe(first)
  writeFileSync(file, `${second}\n`)
  await becomes(second, undefined)
  writeFileSync(file, 'not a hash')
  await becomes(second, warningOf('whose content must be a SHA-256'))
  expect(JSON.stringify(await check())).not.toContain('not a hash')
  rmSync(file)
  await becomes(second, warningOf('that cannot be read'))
  writeFileSync(file, third)
  await becomes(third, undefined)
})
