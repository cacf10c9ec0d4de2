import { readFile, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { inProject } from '@weir/cli/project.ts'
import { WeirError } from '@weir/core/errors.ts'
import { freePorts } from '@weir/runtime/ports.ts'
import type { RunningWeir } from './running-weir.ts'

/** Copies a file of docs/integrations/nginx into a folder, with addresses and paths of this start. */
export async function copySnippet(dir: string, name: string, changes: Readonly<Record<string, string>>): Promise<void> {
  let text = await readFile(inProject('docs/integrations/nginx', name), 'utf8')
  for (const [old, next] of Object.entries(changes)) text = text.replaceAll(old, () => next)
  await writeFile(join(dir, name), text)
}

const accepts = (port: number) =>
  new Promise<boolean>((done) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => done(true)).once('error', () => done(false))
    socket.once('connect', () => socket.destroy())
  })

/** Starts nginx with the files of docs/integrations/nginx in front of an API. Its files are in `dir`. */
export async function startNginx(weir: RunningWeir, api: string) {
  const [port = 0] = await freePorts(1)
  const dir = await weir.makeFolder()
  await copySnippet(dir, 'weir.conf', {
    '127.0.0.1:8081': new URL(weir.api).host,
    '127.0.0.1:9000': new URL(api).host,
    '127.0.0.1:80;': `127.0.0.1:${port};`,
    '# if ($weir_blocked)': 'if ($weir_blocked)',
  })
  await copySnippet(dir, 'weir-blocked.conf', { '/etc/nginx/weir-blocked.list': 'weir-blocked.list' })
  await writeFile(join(dir, 'weir-blocked.list'), '')
  const frame = await readFile(inProject('examples/nginx/nginx.conf'), 'utf8')
  // Only a master can read the files again. Its workers run as the user of this folder.
  const user = process.getuid?.() === 0 ? 'user root root;' : ''
  await writeFile(join(dir, 'nginx.conf'), frame.replace('master_process off;', `worker_processes 1; ${user}`))
  const nginx = weir.program(['nginx', '-p', dir, '-e', 'stderr', '-c', join(dir, 'nginx.conf')])
  await weir.until('nginx accepts connections', async () => {
    if (!nginx.hasEnded()) return accepts(port)
    const what = 'nginx did not start, for the reason above. If it is missing: apt-get install -y nginx'
    throw new WeirError('PROGRAM_MISSING', what)
  })
  return { url: `http://127.0.0.1:${port}`, dir }
}
