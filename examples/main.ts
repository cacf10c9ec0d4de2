/* What `./weir example` runs: programs that show one thing each on a running Weir. */
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { openCommandContext, reportFailure } from '@weir/cli/command-context.ts'
import { inProject } from '@weir/cli/project.ts'
import { WeirError } from '@weir/core/errors.ts'
import { RunningWeir } from './running-weir.ts'

type Start = (weir: RunningWeir) => Promise<void>
const examples: Readonly<Record<string, () => Promise<{ start: Start }>>> = {
  nginx: () => import('./nginx/start.ts'),
  fastify: () => import('./fastify/start.ts'),
  'ai-gateway': () => import('./ai-gateway/start.ts'),
  otp: () => import('./otp/start.ts'),
  prepaid: () => import('./prepaid/start.ts'),
  'alerts-python': () => import('./alerts-python/start.ts'),
}

const usage = `Usage: weir example NAME [--once] [--data DIR]

NAME is ${Object.keys(examples).join(', ')}; examples/NAME/README.md says what it shows. Weir must run: npm start, in another terminal.

--once      end after the last step, without waiting for Ctrl-C
--data DIR  the data directory of the weir up`

const context = openCommandContext(process.env, (exitCode) => process.exit(exitCode))

function invalid(message: string): never {
  throw new WeirError('CONFIG_INVALID', message)
}

function readCall() {
  const options = {
    once: { type: 'boolean' },
    data: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  } as const
  try {
    const { values, positionals } = parseArgs({ options, allowPositionals: true, args: process.argv.slice(3) })
    return { ...values, names: positionals }
  } catch (error) {
    return invalid(`${error instanceof Error ? error.message : error}\n${usage}`)
  }
}

async function run(): Promise<void> {
  const { once = false, data, help, names } = readCall()
  if (help) return context.print(usage)
  const load = names.length === 1 ? examples[names[0] ?? ''] : undefined
  if (load === undefined) return invalid(`There is no example ${names.join(' ') || 'without a name'}.\n${usage}`)
  const { start } = await load()
  const weir = new RunningWeir(data === undefined ? inProject('.weir', 'data') : resolve(context.cwd, data), context)
  const { signal } = context
  const stopped = new Promise<void>((done) => signal.addEventListener('abort', () => done()))
  try {
    await Promise.race([start(weir), stopped])
    if (once || signal.aborted) return
    weir.say('Ctrl-C ends the example, and takes away what it has added to the policy.')
    await stopped
  } finally {
    await weir.end()
  }
}

try {
  await run()
  process.exitCode = 0
} catch (error) {
  process.exitCode = reportFailure(error, context)
}
process.exit()
