import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type AppliedDemo, applyDemo } from '@weir/policy/apply-demo.ts'
import { readStateFile } from '../console/read-state-file.ts'
import { type Secrets, secretsFile, sha256Hex } from './data-dir.ts'

/** What of a `weir up` goes into the policy that a person wrote. */
interface DemoFacts {
  readonly secrets: Pick<Secrets, 'demoKey' | 'demoSmallKey'>
  /** Origins. */
  readonly upstream: string
  readonly receiver: string
}

/** The policy of a `weir up`, with the demo filled in. */
export interface EffectivePolicy extends AppliedDemo {
  /**
   * Names the file and the demo's keys. The demo's addresses differ from one start to the next and are no part of it:
   * with them alone changed, it is the same file.
   */
  readonly revision: string
}

/** The policy that the services of a `weir up` have: the person's, with the demo's keys and addresses filled in. */
export function effectivePolicy(text: string, { secrets, upstream, receiver }: DemoFacts): EffectivePolicy {
  const [demoKeySha256, demoSmallKeySha256] = [sha256Hex(secrets.demoKey), sha256Hex(secrets.demoSmallKey)]
  const facts = { demoKeySha256, demoSmallKeySha256, upstreamUrl: upstream, receiverUrl: `${receiver}/` }
  const revision = sha256Hex([text, demoKeySha256, demoSmallKeySha256].join('\n'))
  return { ...applyDemo(text, facts), revision }
}

/** The same for a `weir up` that runs on the data directory; undefined where none does. */
export function effectivePolicyOf(dataDir: string, text: string): EffectivePolicy | undefined {
  const [upstream, receiver] = [readStateFile(dataDir, 'upstream'), readStateFile(dataDir, 'receiver')]
  if (upstream === undefined || receiver === undefined) return undefined
  const secrets: Secrets = JSON.parse(readFileSync(join(dataDir, secretsFile), 'utf8'))
  return effectivePolicy(text, { secrets, upstream, receiver })
}
