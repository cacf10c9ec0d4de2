import { spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { blockMaxMs, startDocumentedStack } from '../../support/docs/documented-stack.ts'
import { allFences, placeOfFence } from '../../support/docs/fences.ts'
import { forFile } from '../../support/opened.ts'

const commands = allFences.filter(({ language, notRun }) => language === 'sh' && notRun === undefined)

const stack = await forFile(startDocumentedStack())

describe.concurrent('the documents', () => {
  it.each(commands.map((fence) => [placeOfFence(fence), fence] as const))(
    'the commands at %s end well, and every answer is below 400',
    async (_, { text }) => {
      expect((await stack.run(text)).failed).toBeUndefined()
    },
    blockMaxMs,
  )

  it('a command that fails, or is answered with 400 and more, is named', async () => {
    const failures = ['./weir explain --subject nobody --route "GET /hello"', 'curl http://127.0.0.1:8090/v1/usage']
    for (const text of failures) {
      const [command = ''] = text.split(' ')
      expect((await stack.run(`true\n${text}\ntrue`)).failed).toContain(`failed: ${command}`)
    }
  })

  it('the quote of docs/prices.md is answered as the page shows', async () => {
    const at = allFences.findIndex(({ path, text }) => path === 'docs/prices.md' && text.includes('/quote'))
    const { stdout } = await stack.run(allFences[at]?.text ?? '')
    expect(JSON.parse(stdout)).toEqual(JSON.parse(allFences[at + 1]?.text ?? ''))
  })
})

it.each(allFences.filter(({ language }) => language === 'nginx'))(
  'nginx reads the lines at $path:$line',
  async ({ text }) => {
    const [around = '', within = ''] = text.split(/^ *# and in location .*$/m)
    const dir = await mkdtemp(join(tmpdir(), 'weir-test-nginx-'))
    const server = `server { listen unix:nginx.sock; location / { ${within} proxy_pass http://127.0.0.1:2; } }`
    await writeFile(join(dir, 'nginx.conf'), `pid nginx.pid; events {} http { access_log off; ${around} ${server} }`)
    const { status, stderr } = spawnSync('nginx', ['-t', '-p', dir, '-e', 'stderr', '-c', join(dir, 'nginx.conf')], {
      encoding: 'utf8',
    })
    await rm(dir, { recursive: true })
    expect([within === '', status, stderr]).toEqual([false, 0, expect.stringContaining('test is successful')])
  },
)
