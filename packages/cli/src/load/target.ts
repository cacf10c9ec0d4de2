import { WeirError } from '@weir/core/errors.ts'
import { isLoopback } from '@weir/runtime/loopback.ts'
import type { CommandContext } from '../command-context.ts'
import { adminTokenOf } from '../console/console-client.ts'
import { nothingToAsk, readStateFile } from '../read-state-file.ts'
import type { Profile } from './profile.ts'

/** Returns the address of a URL, or throws COMMAND_INVALID. */
function originOf(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isOrigin = url !== undefined && /^https?:$/.test(url.protocol) && url.pathname === '/' && url.username === ''
  if (isOrigin && url.search === '' && url.hash === '') return url
  const what = `http:// or https://, a host and a port, such as http://127.0.0.1:8081, not ${JSON.stringify(text)}`
  throw new WeirError('COMMAND_INVALID', `A target is ${what}.`)
}

const stateOf = { check: 'api', proxy: 'ingress', grpc: 'grpc' } as const

/**
 * Finds where the load goes: to the address that `--target` names, else to the profile's or that of the `weir up` on
 * the data directory, which must be this machine's. A file that was copied, or a state file, never loads another
 * machine.
 */
export function findTarget(
  { via, target: written }: Pick<Profile, 'via' | 'target'>,
  named: string | undefined,
  dataDir: string,
): URL {
  if (named !== undefined) return originOf(named)
  const state = written === undefined ? readStateFile(dataDir, stateOf[via]) : undefined
  if (written === undefined && state === undefined) throw nothingToAsk(`Weir to load`, '--target is', dataDir)
  const found = originOf(written ?? (via === 'grpc' ? `http://${state}` : (state ?? '')))
  if (isLoopback(found.hostname)) return found
  const from = written === undefined ? 'the state file' : 'the profile'
  throw new WeirError(
    'COMMAND_INVALID',
    `${found.host}, which ${from} names, is not this machine. A load goes elsewhere only if you say so: --target ${found.origin}`,
  )
}

/** The demo's keys of the `weir up` on the data directory, by their subjects. */
export function demoKeys(dataDir: string): ReadonlyMap<string, string> {
  const demo = [
    ['demo', readStateFile(dataDir, 'demoKey')],
    ['demo-small', readStateFile(dataDir, 'demoSmallKey')],
  ] as const
  return new Map(demo.flatMap(([subject, key]) => (key === undefined ? [] : [[subject, key] as const])))
}

/** The token for the check API: of the environment, else of the `weir up`, which is sent to this machine alone. */
export function findToken({ environment }: CommandContext, dataDir: string, target: URL): string | undefined {
  const own = isLoopback(target.hostname) ? readStateFile(dataDir, 'adminToken') : undefined
  return adminTokenOf(environment) || own
}
