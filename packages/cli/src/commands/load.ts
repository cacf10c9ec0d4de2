import { WeirError } from '@weir/core/errors.ts'
import type { Policy } from '@weir/policy/policy.ts'
import { parse } from 'yaml'
import type { CommandContext } from '../command-context.ts'
import { findWholePolicy, type PolicyOptions } from '../limits/find-policy.ts'
import { compareLoads, readLoadReport } from '../load/compare.ts'
import { LimitWatch } from '../load/limit-watch.ts'
import { createMix } from '../load/mix.ts'
import { type LoadRoute, type Profile, readProfile } from '../load/profile.ts'
import { type LoadReport, reportText } from '../load/report.ts'
import { type OnDecision, runLoad } from '../load/run-load.ts'
import type { Sender } from '../load/sender.ts'
import { demoKeys, findTarget, findToken } from '../load/target.ts'
import { readInputFile } from '../read-input-file.ts'

/** The options of `weir load`. */
export interface LoadOptions extends PolicyOptions {
  readonly profile?: string
  readonly via?: string
  readonly target?: string
  readonly subject?: readonly string[]
  readonly skew?: number
  readonly route?: readonly string[]
  readonly rate?: number
  readonly users?: number
  readonly think?: string
  readonly for?: string
  readonly keys?: string
  readonly compare?: string
}

/** Subjects of a policy that are loaded where none are named; a policy may have a million. */
const subjectsTaken = 1_000

/** What flags say, in the words of a profile. */
function flagsOf({ via, subject, skew, route, rate, users, think, for: time }: LoadOptions) {
  const isStep = rate !== undefined || users !== undefined
  if (!isStep && (time !== undefined || think !== undefined))
    throw new WeirError('COMMAND_INVALID', '--for and --think belong to --rate or --users.')
  const given = {
    via,
    subjects: subject,
    skew,
    routes: route?.map((one) => ({ route: one })),
    steps: isStep ? [dropUndefined({ rate, users, think, for: time ?? '30s' })] : undefined,
  }
  return dropUndefined(given)
}

const dropUndefined = (all: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))

/** Reads keys by their subjects. No message repeats what the file has. */
function readKeys(file: string): ReadonlyMap<string, string> {
  let found: unknown
  try {
    found = parse(readInputFile(file, 'COMMAND_INVALID', `The keys ${file}`))
  } catch (error) {
    if (error instanceof WeirError) throw error
  }
  const all: readonly (readonly [string, unknown])[] = typeof found === 'object' ? Object.entries(found ?? {}) : []
  const keys = all.filter((one): one is [string, string] => typeof one[1] === 'string')
  if (keys.length > 0 && keys.length === all.length) return new Map(keys)
  throw new WeirError('COMMAND_INVALID', `The keys ${file} must be lines such as "acme: KEY", one for each subject.`)
}

/**
 * Finds the policy whose limits are checked: the file that was named, else the console's. A Weir elsewhere has another
 * policy than the `weir up` here.
 */
async function findPolicy(options: LoadOptions, context: CommandContext): Promise<Policy | undefined> {
  const isElsewhere = options.target !== undefined && !context.environment.WEIR_CONSOLE_URL
  if (options.policy === undefined && isElsewhere) return undefined
  return (await findWholePolicy(options, context)).policy
}

const ofOneRequest = ({ method, path }: { readonly method: string; readonly path: string }) =>
  /^[A-Z]+$/.test(method) && method !== 'DESCRIPTOR' && !/[:*]/.test(path)

/** The requests of the policy's own routes; any request where none of them is one that can be sent as it is. */
function routesOf(policy: Policy | undefined): readonly LoadRoute[] {
  const found = (policy?.routes ?? []).filter(ofOneRequest)
  if (found.length === 0) return [{ method: 'GET', path: '/', share: 1 }]
  return found.map(({ method, path }) => ({ method, path, share: 1 }))
}

function subjectsOf(policy: Policy | undefined, keys: ReadonlyMap<string, string> | undefined): readonly string[] {
  const known = [...(policy?.subjects.keys() ?? [])].filter((id) => keys?.has(id) ?? true)
  if (known.length > 0) return known.slice(0, subjectsTaken)
  throw new WeirError('COMMAND_INVALID', 'Name subjects with --subject ID or in a --profile.')
}

/** Opens what sends the requests; through the proxy each subject needs a key. */
async function openSender(
  { via }: Profile,
  target: URL,
  token: string | undefined,
  keys: ReadonlyMap<string, string>,
): Promise<Sender> {
  if (via === 'grpc') return (await import('../load/grpc-sender.ts')).grpcSender(target, token)
  const { checkWay, httpSender, proxyWay } = await import('../load/http-sender.ts')
  if (via === 'proxy') return httpSender(target, proxyWay(keys))
  if (token === undefined)
    throw new WeirError(
      'COMMAND_INVALID',
      'The check API needs a token: set WEIR_ADMIN_TOKEN to a token with the `check` scope.',
    )
  return httpSender(target, checkWay(token))
}

/**
 * Loads a Weir and reports latencies, codes, decisions, and whether every limit held. Returns whether none was broken.
 */
export async function load(options: LoadOptions, context: CommandContext): Promise<{ readonly isHeld: boolean }> {
  const { profile: file, data, json, compare } = options
  const text = file === undefined ? undefined : readInputFile(file, 'COMMAND_INVALID', `The profile ${file}`)
  const profile = readProfile(text === undefined ? undefined : { text, name: file ?? '' }, flagsOf(options))
  const target = findTarget(profile, options.target, data)
  const before =
    compare === undefined
      ? undefined
      : readLoadReport(readInputFile(compare, 'COMMAND_INVALID', `The report ${compare}`), compare)
  const keys = profile.via === 'proxy' ? keysOf(options) : undefined
  const policy = await findPolicy(options, context)
  const subjects = profile.subjects ?? subjectsOf(policy, keys)
  const keyless = keys === undefined ? undefined : subjects.find((id) => !keys.has(id))
  if (keyless !== undefined)
    throw new WeirError(
      'COMMAND_INVALID',
      `There is no key of ${keyless}, which the proxy asks for: name a file with --keys.`,
    )
  const sender = await openSender(profile, target, findToken(context, data, target), keys ?? new Map())
  const watch = policy === undefined ? undefined : new LimitWatch(policy, profile.via)
  const next = createMix(subjects, profile.routes ?? routesOf(policy), profile.skew)
  const from = new Date().toISOString()
  try {
    const onDecision: OnDecision = (...decided) => watch?.onDecision(...decided)
    const tally = await runLoad({ steps: profile.steps, next, sender, onDecision }, context)
    context.progress.tell('checking limits')
    const found: LoadReport = {
      via: profile.via,
      target: target.origin,
      from,
      to: new Date().toISOString(),
      steps: tally.steps.map((step, at) => step.report(profile.steps[at])),
      total: tally.all.report(undefined),
      codes: tally.codes,
      decisions: tally.decisions,
      limits: watch?.report() ?? null,
    }
    const report = before === undefined ? found : { ...found, compared: compareLoads(before, found) }
    context.print(json ? JSON.stringify(report) : reportText(report))
    return { isHeld: !report.limits?.some(({ verdict }) => verdict === 'broken') }
  } finally {
    await sender.close()
  }
}

const keysOf = ({ keys, data, target }: LoadOptions): ReadonlyMap<string, string> =>
  new Map([...(target === undefined ? demoKeys(data) : []), ...(keys === undefined ? [] : readKeys(keys))])
