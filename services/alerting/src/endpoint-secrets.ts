import { WeirError } from '@weir/core/errors.ts'
import type { Policy } from '@weir/core/policy/policy.ts'
import type { Environment } from '@weir/runtime/read-config.ts'

/** The endpoints' signing secrets by endpoint name; throws one CONFIG_INVALID that names every variable that is wrong. */
export function readEndpointSecrets(policy: Policy, environment: Environment): ReadonlyMap<string, string> {
  const problems: string[] = []
  const secrets = new Map<string, string>()
  for (const { name, secretEnv } of policy.endpoints.values()) {
    const secret = environment[secretEnv] ?? ''
    if (/^whsec_[A-Za-z0-9+/]{32,}={0,2}$/.test(secret)) secrets.set(name, secret)
    else problems.push(`${secretEnv} (endpoint ${name}) must be whsec_ and 24 to 64 random bytes in base64`)
  }
  if (problems.length === 0) return secrets
  throw new WeirError('CONFIG_INVALID', `The environment is not right:\n  ${problems.join('\n  ')}`)
}
