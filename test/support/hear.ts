import type { ChildProcess } from 'node:child_process'

/** What a program has written so far, and how it ends: its exit code, null for a signal. */
export function hear(child: ChildProcess) {
  const ended = new Promise<number | null>((done) => child.once('close', done))
  const heard = { stdout: '', stderr: '', ended }
  child.stdout?.on('data', (part: Buffer) => (heard.stdout += part.toString()))
  child.stderr?.on('data', (part: Buffer) => (heard.stderr += part.toString()))
  return heard
}
