import { isIP } from 'node:net'
import type { Endpoint, Policy } from '@weir/policy/policy.ts'
import { isPublicAddress } from '@weir/runtime/outgoing/outgoing.ts'

/** Set by `weir up` for its own demo. */
const isOfDemo = (variable: string) => variable.startsWith('WEIR_DEMO_')

/** The variables that an endpoint needs in the environment of alerting. */
function variablesOf(endpoint: Endpoint): readonly string[] {
  if (endpoint.type === 'email' || endpoint.type === 'subject') return ['WEIR_SMTP_URL']
  const named = endpoint.type === 'slack' || endpoint.type === 'teams' ? endpoint.urlEnv : endpoint.secretEnv
  return named === undefined ? [] : [named]
}

/** Whether a host of a URL is of this machine or a private network. Names are looked up at each delivery instead. */
function isPrivateHost(host: string): boolean {
  const address = host.replace(/^\[|\]$/g, '')
  return isIP(address) === 0 ? host === 'localhost' : !isPublicAddress(address)
}

/**
 * Returns which endpoints of a policy get nothing, a sentence for each.
 *
 * @param isSet whether alerting has a variable; undefined where its environment is not known.
 */
export function undelivered(
  { endpoints }: Pick<Policy, 'endpoints'>,
  isSet: ((variable: string) => boolean) | undefined,
): readonly string[] {
  return [...endpoints.values()].flatMap((endpoint) => {
    const { name, type } = endpoint
    const hasVariable = (variable: string) =>
      isSet === undefined || isOfDemo(variable) || isSet(variable) || isSet(`${variable}_FILE`)
    const missing = variablesOf(endpoint).filter((variable) => !hasVariable(variable))
    const host = type === 'webhook' ? new URL(endpoint.url).hostname : ''
    const isPrivate = type === 'webhook' && !endpoint.allowPrivate && isPrivateHost(host)
    return [
      ...missing.map((variable) => `endpoint ${name}: ${variable} is not set, so nothing is delivered to it.`),
      ...(isPrivate
        ? [`endpoint ${name}: ${host} is a private address, so alerts are not delivered. Add allowPrivate: true.`]
        : []),
    ]
  })
}
