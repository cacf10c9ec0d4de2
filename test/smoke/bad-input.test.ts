import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { folderForFile } from '../support/opened.ts'
import { runWeir } from '../support/weir-up.ts'
import { wholeWeir } from '../support/whole-weir.ts'

const dir = await folderForFile('bad')

const badPolicy = `version: 1
plans:
  free: { limits: [minute, hourly] }
limits:
  minute: { algorithm: leaky_cauldron, size: -5, window: 1m }
  minute: { algorithm: fixed_window, size: 5, window: 1m }
subjects:
  acme: { plan: gold, timeZone: 7 }
`

describe('weir up with something wrong', () => {
  it('names every problem of the policy with file and line, and starts nothing', async () => {
    const file = join(dir, 'weir.yaml')
    await writeFile(file, badPolicy)
    const { code, stderr } = await runWeir(['up', '--policy', file, '--data', join(dir, 'data')])
    expect(code).toBe(2)
    expect(stderr).toContain(`${file}:3:`)
    expect(stderr).toContain('hourly')
    expect(stderr).toContain(`${file}:5:`)
    expect(stderr).toContain('leaky_cauldron')
    expect(stderr).toContain(`${file}:6:`)
    expect(stderr).toContain('gold')
    expect(stderr).toContain('timeZone')
    expect(stderr).not.toContain('starting')
    expect(stderr).not.toMatch(/\n\s+at /)
  })

  it('names every wrong variable of the environment, and a policy that is not there', async () => {
    const env = { WEIR_LOG_LEVEL: 'loud', WEIR_REDIS_URL: 'http://somewhere' }
    const environment = await runWeir(['up', '--data', join(dir, 'env')], env)
    expect([environment.code, environment.stderr.match(/WEIR_\w+/g)]).toEqual([2, ['WEIR_LOG_LEVEL', 'WEIR_REDIS_URL']])
    const policy = await runWeir(['up', '--policy', join(dir, 'nowhere.yaml')])
    expect([policy.code, policy.stderr]).toEqual([
      2,
      expect.stringContaining('nowhere.yaml cannot be read: there is no such file'),
    ])
  })

  it('is known before: weir check finds the environment of a service right, or names what is missing', async () => {
    const { kafka, clickhouse } = (await wholeWeir()).line
    const check = (env: NodeJS.ProcessEnv) => runWeir(['check', '--service', 'metering'], env)
    expect(await check({ WEIR_KAFKA_BROKERS: kafka, WEIR_CLICKHOUSE_URL: clickhouse })).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('environment: right for metering\n'),
    })
    expect(await check({ WEIR_KAFKA_BROKERS: kafka })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('WEIR_CLICKHOUSE_URL'),
    })
  })

  it('says that the data directory is in use and by whom', async () => {
    const running = await wholeWeir()
    const { code, stderr } = await runWeir(['up', '--data', running.dir, '--ports', 'auto'])
    expect(code).toBe(1)
    expect(stderr).toContain(`${running.dir} is in use by process ${running.line.launcher}`)
    expect(stderr.trim().split('\n')).toHaveLength(1)
    expect((await fetch(`${running.line.receiver}/deliveries`)).status).toBe(200)
  })

  it('names the port that another program holds', async () => {
    const other = createServer()
    await new Promise<void>((done) => other.listen(8090, '127.0.0.1', done))
    const { code, stderr } = await runWeir(['up', '--data', join(dir, 'ports')])
    await new Promise((done) => other.close(done))
    expect(code).toBe(1)
    expect(stderr).toContain('8090 (console)')
    expect(stderr).toContain('--ports auto')
    expect(stderr).not.toContain('starting')
  })
})
