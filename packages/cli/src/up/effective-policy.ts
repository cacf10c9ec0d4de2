import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Applied } from '@weir/api/policy.ts'
import { WeirError } from '@weir/core/errors.ts'
import { type AppliedDemo, applyDemo } from '@weir/policy/apply-demo.ts'
import { parse } from 'yaml'
import { askConsole, type ConsoleAddress } from '../console/console-client.ts'
import { countsText } from '../console/file-changes.ts'
import { readStateFile } from '../read-state-file.ts'
import { type Secrets, secretsFile, sha256Hex } from './data-dir.ts'

/** The policy of a `weir up`, with the demo filled in. */
export interface EffectivePolicy extends AppliedDemo {
  /**
   * Names the file and the demo's keys. The demo's addresses differ from one start to the next and are no part of it:
   * with them alone changed, it is the same file.
   */
  readonly revision: string
}

/** Makes the policy of a `weir up`: the text of a file, with the demo's keys and addresses filled in. */
export function effectivePolicy(
  text: string,
  demo: {
    readonly secrets: Pick<Secrets, 'demoKey' | 'demoSmallKey'>
    /** Origins. */
    readonly upstream: string
    readonly receiver: string
  },
): EffectivePolicy {
  const { secrets, upstream, receiver } = demo
  const [demoKeySha256, demoSmallKeySha256] = [sha256Hex(secrets.demoKey), sha256Hex(secrets.demoSmallKey)]
  const facts = { demoKeySha256, demoSmallKeySha256, upstreamUrl: upstream, receiverUrl: `${receiver}/` }
  const revision = sha256Hex([text, demoKeySha256, demoSmallKeySha256].join('\n'))
  return { ...applyDemo(text, facts), revision }
}

/** Makes the policy of the `weir up` that runs on the data directory; undefined where none does. */
export function effectivePolicyOf(dataDir: string, text: string): EffectivePolicy | undefined {
  const [upstream, receiver] = [readStateFile(dataDir, 'upstream'), readStateFile(dataDir, 'receiver')]
  if (upstream === undefined || receiver === undefined) return undefined
  const secrets: Secrets = JSON.parse(readFileSync(join(dataDir, secretsFile), 'utf8'))
  return effectivePolicy(text, { secrets, upstream, receiver })
}

/** The parts that hold the demo's own addresses, which differ from one start to the next. */
const demoEntities = [
  ['upstreams', 'demo'],
  ['endpoints', 'demo'],
] as const

/**
 * Puts the file in force if it is another than the one applied last, so that what the admin API has changed meanwhile
 * survives a restart, and what was edited in the file is taken over. Of the same file only the demo's addresses are
 * brought up to date, unless the admin API has written others.
 */
export async function putPolicyInForce(options: {
  readonly console: ConsoleAddress
  readonly policy: EffectivePolicy
  /** The effective text of the last time; undefined for the first. */
  readonly before: string | undefined
  readonly report: (line: string) => void
}): Promise<void> {
  const { console, policy, before, report } = options
  const path = `/v1/policy?if_changed=true&revision=${policy.revision}`
  const { body, change } = await askConsole<Applied>(console, { method: 'PUT', path, body: policy.text })
  if (change !== undefined) {
    report(body.changed ? `the policy is now in force: ${countsText(body)}` : 'the policy in force is unchanged')
    return
  }
  report('policy file unchanged since the last start; edits made through the admin API are kept')
  if (before === undefined || before === policy.text) return
  const [then, now]: readonly unknown[] = [parse(before), parse(policy.text)]
  for (const [section, name] of demoEntities) {
    const [old, wanted] = [entityOf(then, section, name), entityOf(now, section, name)]
    if (wanted === undefined || isSame(old, wanted)) continue
    const path = `/v1/${section}/${name}`
    const inForce = await askConsole(console, { path }).catch(unlessRefused)
    if (inForce !== undefined && isSame(old, inForce.body)) {
      await askConsole(console, { method: 'PUT', path, body: wanted, origin: 'file' })
    }
  }
}

const entityOf = (policy: unknown, section: string, name: string): unknown => Object(Object(policy)[section])[name]

/** Ignores the refusal for an entity that the admin API has deleted: it is not wanted. */
function unlessRefused(error: unknown): undefined {
  if (!(error instanceof WeirError) || error.code !== 'COMMAND_INVALID') throw error
}

/** Both are read from YAML or JSON that Weir wrote: the order of names is the same. */
const isSame = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b)
