import type { Policy } from '@weir/policy/policy.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import type { Environment } from '@weir/runtime/read-config.ts'
import type { AlertTemplates } from './alert-templates.ts'
import { findProblem } from './channels/channels.ts'

/**
 * Returns the function that finds what the policy's endpoints lack, a sentence for each, and logs it when it has
 * changed. An alert whose endpoint lacks something waits, and is tried again; a template that is wrong is not used.
 */
export function createProblemFinder(options: {
  readonly policyInForce: () => Pick<Policy, 'endpoints'>
  readonly environment: Environment
  readonly templates: Pick<AlertTemplates, 'findProblems'>
  readonly log: Logger
}): () => readonly string[] {
  const { policyInForce, environment, templates, log } = options
  let logged = ''
  return function findProblems() {
    const missing = [...policyInForce().endpoints.values()].flatMap((one) => findProblem(one, environment) ?? [])
    const problems = [...missing, ...templates.findProblems()]
    if (problems.length > 0 && problems.join() !== logged) log.warn({ problems }, 'endpoints are incomplete')
    logged = problems.join()
    return problems
  }
}
