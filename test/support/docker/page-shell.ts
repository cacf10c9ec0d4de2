import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'

/** A bash in which the commands of a page run one after another, as in a person's terminal. */
export type PageShell = ReturnType<typeof openPageShell>

/** Opens a bash in a folder, where a person would stand who follows the page. */
export function openPageShell(cwd: string, env: NodeJS.ProcessEnv) {
  const bash = spawn('bash', ['--noprofile', '--norc'], { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [bash.stdout, bash.stderr]) stream.on('data', (chunk: Buffer) => (said += chunk.toString()))
  return {
    /** Resolves to all that the commands printed; rejects with it if one of them fails. */
    async run(commands: string, deadlineMs: number) {
      said = ''
      const end = `end-${randomUUID()}`
      const signal = AbortSignal.timeout(deadlineMs)
      bash.stdin.write(`trap 'echo; echo ${end} failed "$BASH_COMMAND"' ERR\n${commands}\n`)
      bash.stdin.write(`trap - ERR; echo; echo ${end} done\n`)
      while (!said.includes(`${end} done\n`)) {
        await once(bash.stdout, 'data', { signal }).catch(() => {
          throw new Error(`not done within ${deadlineMs} ms:\n${commands}\n${said}`)
        })
      }
      if (said.includes(`${end} failed`)) throw new Error(said)
      return said.slice(0, said.indexOf(end))
    },
    close: () => bash.kill('SIGKILL'),
  }
}
