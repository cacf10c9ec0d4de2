import type { Endpoint, Policy } from '@weir/core/policy/policy.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import type { Environment } from '@weir/runtime/read-config.ts'

/** An endpoint of the policy in force. */
export interface ReachableEndpoint {
  readonly endpoint: Endpoint
  /** Undefined while its variable is missing or wrong: what is to be sent there waits, and is tried again. */
  readonly secret: string | undefined
}

/** The endpoints of the policy in force with their signing secrets, which the environment has. */
export interface EndpointSecrets {
  names(): readonly string[]
  get(name: string): ReachableEndpoint | undefined
  /** A sentence for each endpoint that nothing can be sent to. */
  readonly problems: readonly string[]
  /** Goes by this policy from now on. */
  follow(policy: Policy): void
}

export function createEndpointSecrets(policy: Policy, environment: Environment, log: Logger): EndpointSecrets {
  let endpoints = new Map<string, ReachableEndpoint>()
  let problems: readonly string[] = []
  const follow = (next: Policy) => {
    endpoints = new Map()
    for (const endpoint of next.endpoints.values()) {
      const given = environment[endpoint.secretEnv] ?? ''
      const isSecret = /^whsec_[A-Za-z0-9+/]{32,}={0,2}$/.test(given)
      endpoints.set(endpoint.name, { endpoint, secret: isSecret ? given : undefined })
    }
    problems = [...endpoints.values()].flatMap(({ endpoint: { name, secretEnv }, secret }) =>
      secret === undefined
        ? [`${secretEnv} (endpoint ${name}) must be whsec_ and 24 to 64 random bytes in base64; set it and start again`]
        : [],
    )
    if (problems.length > 0) log.warn({ problems }, 'endpoints without a secret')
  }
  follow(policy)
  return {
    names: () => [...endpoints.keys()],
    get: (name) => endpoints.get(name),
    get problems() {
      return problems
    },
    follow,
  }
}
