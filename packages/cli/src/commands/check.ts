import { alertingVariables } from '@weir/alerting/config.ts'
import { consoleVariables } from '@weir/console/config.ts'
import { WeirError } from '@weir/core/errors.ts'
import { ingressVariables } from '@weir/ingress/config.ts'
import { meteringVariables } from '@weir/metering/config.ts'
import type { Policy } from '@weir/policy/policy.ts'
import { parsePolicy } from '@weir/policy/reader/parse-policy.ts'
import { formatProblem } from '@weir/policy/reader/text-reader.ts'
import { checkConfig, type Environment, type Variables } from '@weir/runtime/read-config.ts'
import type { CommandContext } from '../command-context.ts'
import { undelivered } from '../console/undelivered.ts'
import { isGiven } from '../find-servers.ts'
import { readPolicyFile } from '../read-input-file.ts'

const services: Readonly<Record<string, Variables>> = {
  ingress: ingressVariables,
  metering: meteringVariables,
  alerting: alertingVariables,
  console: consoleVariables,
}

/** Counts the parts of a policy in words: `1 plan, 2 watches`. */
function policySummary(policy: Policy): string {
  const parts = ['plans', 'limits', 'routes', 'subjects', 'keys', 'endpoints', 'watches'] as const
  const counted = parts.map((name) => {
    const part = policy[name]
    const count = 'size' in part ? part.size : part.length
    return `${count} ${count === 1 ? name.replace(/(?<=ch)es$|s$/, '') : name}`
  })
  return counted.join(', ')
}

/** Problems of the environment; a variable that services share is named once. */
function environmentProblems(environment: Environment, names = Object.keys(services)): string[] {
  const byVariable = new Map<string, string>()
  for (const name of names) {
    const result = checkConfig(services[name] ?? {}, environment)
    const problems = result.kind === 'problems' ? result.problems : []
    for (const problem of problems) byVariable.set(problem.split(' ', 1)[0] ?? '', problem)
  }
  return [...byVariable.values()]
}

/** The variables that `weir up` sets by itself, with valid values. */
const filledIn = {
  WEIR_REDIS_URL: 'redis://127.0.0.1:1',
  WEIR_KAFKA_BROKERS: '127.0.0.1:1',
  WEIR_CLICKHOUSE_URL: 'http://127.0.0.1:1',
  WEIR_JOURNAL_DIR: 'journal',
}

/** Refuses an environment that would stop some service of `weir up`, before anything is started. */
export function requireEnvironment(environment: Environment): void {
  const secured = Object.keys(environment).find((name) => /^WEIR_(?:API_|GRPC_)?TLS_/.test(name) && environment[name])
  if (secured !== undefined) {
    const what = `${secured} is set, and weir up serves without TLS, on loopback`
    throw new WeirError('CONFIG_INVALID', `${what}. Unset it, or start the services by themselves.`)
  }
  const given = Object.entries(environment).filter(([, value]) => value !== '')
  const unnamed = Object.entries(filledIn).filter(([name]) => !environment[`${name}_FILE`])
  const problems = environmentProblems({ ...Object.fromEntries(unnamed), ...Object.fromEntries(given) })
  if (problems.length === 0) return
  throw new WeirError('CONFIG_INVALID', `The environment has mistakes.\n  ${problems.join('\n  ')}`)
}

/**
 * Tries the policy, and the environment as far as it is set up for services, without starting or opening anything. An
 * environment without any WEIR_ address is that of `weir up`, which fills them in itself. With `service` it is that of
 * one service alone. Returns what `--json` prints.
 */
export function check(options: { policy: string; json: boolean; service?: string }, context: CommandContext) {
  const parsed = parsePolicy(readPolicyFile(options.policy), options.policy)
  const policyProblems = parsed.kind === 'problems' ? parsed.problems.map(formatProblem) : []
  // What is right and does nothing, or less than its writer may expect.
  const remarks = parsed.kind === 'policy' ? parsed.remarks.map(formatProblem) : []
  const { environment } = context
  const { service } = options
  if (parsed.kind === 'policy' && (service ?? 'alerting') === 'alerting')
    remarks.push(...undelivered(parsed.policy, (name) => isGiven(environment, name)))
  const addresses = ['WEIR_REDIS_URL', 'WEIR_KAFKA_BROKERS', 'WEIR_CLICKHOUSE_URL']
  const isSetUp = service !== undefined || addresses.some((name) => isGiven(environment, name))
  const wrong = isSetUp ? environmentProblems(environment, service === undefined ? undefined : [service]) : []
  const problems = [...policyProblems, ...wrong]
  const result = { ok: problems.length === 0, problems, remarks }
  if (options.json) context.print(JSON.stringify(result))
  else if (parsed.kind === 'policy' && result.ok) {
    for (const remark of remarks) context.report(remark)
    context.print(`${options.policy}: ${policySummary(parsed.policy)}`)
    context.print(
      isSetUp
        ? `environment: right for ${service ?? 'all four services'}`
        : 'environment: no servers named; ./weir up runs its own',
    )
  } else for (const problem of problems) context.report(problem)
  return result
}
