import { readFileSync } from 'node:fs'
import { alertingVariables } from '@weir/alerting/config.ts'
import { consoleVariables } from '@weir/console/config.ts'
import { parsePolicy } from '@weir/core/policy/parse-policy.ts'
import type { Policy } from '@weir/core/policy/policy.ts'
import { formatProblem } from '@weir/core/policy/policy-problem.ts'
import { ingressVariables } from '@weir/ingress/config.ts'
import { meteringVariables } from '@weir/metering/config.ts'
import { checkConfig, type Environment, type Variables } from '@weir/runtime/read-config.ts'
import type { Surroundings } from '../project.ts'

const services: Readonly<Record<string, Variables>> = {
  ingress: ingressVariables,
  metering: meteringVariables,
  alerting: alertingVariables,
  console: consoleVariables,
}

const plural = (count: number, thing: string) => `${count} ${thing}${count === 1 ? '' : 's'}`

function policySummary({ plans, limits, routes, subjects, keys, endpoints }: Policy): string {
  const counts = { plan: plans, limit: limits, route: routes, subject: subjects, key: keys, endpoint: endpoints }
  return Object.entries(counts)
    .map(([thing, list]) =>
      plural(Array.isArray(list) ? list.length : (list as ReadonlyMap<string, unknown>).size, thing),
    )
    .join(', ')
}

/** Problems of the environment; a variable that services share is named once. */
function environmentProblems(environment: Environment): string[] {
  const problems = Object.values(services).flatMap((variables) => {
    const result = checkConfig(variables, environment)
    return result.kind === 'problems' ? result.problems : []
  })
  return [...new Set(problems)]
}

export interface CheckResult {
  readonly ok: boolean
  readonly problems: readonly string[]
}

/**
 * Tries the policy, and the environment as far as it is set up for services, without starting or opening anything. An
 * environment without any WEIR_ address is that of `weir up`, which fills them in itself.
 */
export function check(options: { policy: string; json: boolean }, around: Surroundings): CheckResult {
  const parsed = parsePolicy(readFileSync(options.policy, 'utf8'), options.policy)
  const policyProblems = parsed.kind === 'problems' ? parsed.problems.map(formatProblem) : []
  const { environment } = around
  const isSetUp = ['WEIR_REDIS_URL', 'WEIR_KAFKA_BROKERS', 'WEIR_CLICKHOUSE_URL'].some((name) => environment[name])
  const problems = [...policyProblems, ...(isSetUp ? environmentProblems(environment) : [])]
  const result = { ok: problems.length === 0, problems }
  if (options.json) around.print(JSON.stringify(result))
  else if (parsed.kind === 'policy' && result.ok) {
    around.print(`${options.policy}: ${policySummary(parsed.policy)}`)
    around.print(
      isSetUp ? 'environment: right for all four services' : 'environment: no servers named; ./weir up runs its own',
    )
  } else for (const problem of problems) around.say(problem)
  return result
}
