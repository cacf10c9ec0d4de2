import type { Endpoint, Policy, SlackEndpoint, WebhookEndpoint } from '@weir/core/policy/policy.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import type { Environment } from '@weir/runtime/read-config.ts'

/** The current one and that before it; more would only be more that can leak. */
const secretsMax = 2
/** Standard Webhooks: 24 to 64 bytes. */
const secretForm = /^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/

/** What the environment has for the policy's endpoints. What is to be sent where something is missing waits, and is tried again. */
export interface EndpointSecrets {
  /** The current one first; none while the variable is missing or wrong. */
  signingSecrets(endpoint: WebhookEndpoint): readonly string[]
  /** Undefined while the variable is missing or wrong. */
  slackUrl(endpoint: SlackEndpoint): string | undefined
  /** A sentence for each endpoint that nothing can be sent to. */
  readonly problems: readonly string[]
  /** Goes by this policy from now on. */
  follow(policy: Policy): void
}

/** One secret, or in a rotation the new and the old, with a space between them. */
function parseSecrets(text: string): readonly string[] {
  const secrets = text.split(' ').filter((part) => part !== '')
  return secrets.length <= secretsMax && secrets.every((secret) => secretForm.test(secret)) ? secrets : []
}

const parseSlackUrl = (text: string) =>
  /^https?:\/\/[^/@?#\s]+\S*$/.test(text) && URL.canParse(text) ? text : undefined

export function createEndpointSecrets(policy: Policy, environment: Environment, log: Logger): EndpointSecrets {
  let problems: readonly string[] = []
  const signingSecrets = ({ secretEnv }: WebhookEndpoint) => parseSecrets(environment[secretEnv] ?? '')
  const slackUrl = ({ urlEnv }: SlackEndpoint) => parseSlackUrl(environment[urlEnv] ?? '')

  const problemOf = (endpoint: Endpoint): string | undefined => {
    const { name, type } = endpoint
    if (type === 'webhook' && signingSecrets(endpoint).length === 0) {
      return `${endpoint.secretEnv} (endpoint ${name}) must be whsec_ and 24 to 64 random bytes in base64, or two of them while one replaces the other; set it and start again`
    }
    if (type === 'slack' && slackUrl(endpoint) === undefined) {
      return `${endpoint.urlEnv} (endpoint ${name}) must be the URL of an incoming webhook; set it and start again`
    }
    if (type === 'email' && !environment.WEIR_SMTP_URL) {
      return `WEIR_SMTP_URL (endpoint ${name}) must name the server that sends mail; set it and start again`
    }
    return undefined
  }
  const follow = (next: Policy) => {
    problems = [...next.endpoints.values()].flatMap((endpoint) => problemOf(endpoint) ?? [])
    if (problems.length > 0) log.warn({ problems }, 'endpoints that nothing can be sent to')
  }
  follow(policy)
  return {
    signingSecrets,
    slackUrl,
    get problems() {
      return problems
    },
    follow,
  }
}
