import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'

/** setpriv is part of util-linux, which every Linux distribution ships as essential. */
const setpriv = ['/usr/bin/setpriv', '/bin/setpriv'].find((path) => existsSync(path))

/** Exits if the parent died before the kernel was asked to watch it. */
const unlessOrphaned = 'test "$PPID" = "$0" || exit 137; exec "$@"'

/**
 * Starts a program that cannot outlive this process: the kernel kills it (PR_SET_PDEATHSIG) when this process ends in
 * whatever way, `kill -9` included. It gets its own session, so that Ctrl-C at the terminal reaches only us and we stop
 * things in order. Where setpriv does not exist (macOS) the program is started plainly, without that guarantee.
 */
export function spawnBound(command: readonly [string, ...string[]], options: SpawnOptions): ChildProcess {
  const [program, ...args] = command
  if (setpriv === undefined) return spawn(program, args, { ...options, detached: true })
  const watch = ['--pdeathsig', 'KILL', '--', 'sh', '-c', unlessOrphaned, String(process.pid)]
  return spawn(setpriv, [...watch, program, ...args], { ...options, detached: true })
}
