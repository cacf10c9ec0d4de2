import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fetchPythonClient } from '@weir/examples/alerts-python/python-client.ts'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'

const project = resolve(import.meta.dirname, '../../..')
const examples = join(project, 'docs/alert-consumers')
export type RunningExample = ReturnType<typeof run>

function run(name: string, command: readonly [string, ...string[]], environment: Readonly<Record<string, string>>) {
  let [text, troubles] = ['', '']
  const child = spawnBound(command, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...environment } })
  child.stdout?.on('data', (part: Buffer) => (text += part))
  child.stderr?.on('data', (part: Buffer) => (troubles += part))
  const ended = new Promise<void>((done) => child.once('exit', () => done()))
  return {
    name,
    /** What it has printed, a text per line. */
    lines() {
      if (child.exitCode !== null) throw new Error(`${name} has ended:\n${troubles}`)
      return text.split('\n').filter((line) => line !== '')
    },
    async close() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** Runs the examples of docs/alert-consumers as they are, with these variables besides. */
export async function startConsumerExamples(
  brokers: string,
  login: Readonly<Record<string, string>> = {},
): Promise<readonly RunningExample[]> {
  const dir = await mkdtemp(join(tmpdir(), 'weir-test-consumers-'))
  const pythonModules = await fetchPythonClient()
  // As if somebody had said npm install kafkajs beside it.
  await mkdir(join(dir, 'node_modules'))
  await symlink(join(project, 'packages/kafka/node_modules/kafkajs'), join(dir, 'node_modules/kafkajs'))
  await symlink(join(examples, 'consume.mjs'), join(dir, 'consume.mjs'))
  const node: [string, ...string[]] = [process.execPath, '--preserve-symlinks-main', join(dir, 'consume.mjs')]
  const running = [
    run('kafkajs', node, { BROKERS: brokers, ...login }),
    run('python', ['python3', join(examples, 'consume.py')], { BROKERS: brokers, PYTHONPATH: pythonModules, ...login }),
    run('kcat', ['sh', join(examples, 'consume.sh')], { BROKERS: brokers, ...login }),
  ]
  const [first, ...others] = running
  if (first === undefined) return running
  const close = async () => {
    await first.close()
    await rm(dir, { recursive: true, force: true })
  }
  return [{ ...first, close }, ...others]
}
