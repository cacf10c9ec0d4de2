import type { Endpoint, Policy, SlackEndpoint, WebhookEndpoint } from '@weir/policy/policy.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import type { Environment } from '@weir/runtime/read-config.ts'
import { readSecretFile } from '@weir/runtime/secret.ts'

/** The current and the previous secret; more would only be more to leak. */
const secretsMax = 2
/** Standard Webhooks: 24 to 64 bytes. */
const secretForm = /^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/

/** Reads one secret, or during a rotation the new and the old with a space between them. */
function parseSecrets(text: string): readonly string[] {
  const secrets = text.split(' ').filter((part) => part !== '')
  return secrets.length <= secretsMax && secrets.every((secret) => secretForm.test(secret)) ? secrets : []
}

const smtpVariable = 'WEIR_SMTP_URL'

const parseSlackUrl = (text: string) =>
  /^https?:\/\/[^/@?#\s]+\S*$/.test(text) && URL.canParse(text) ? text : undefined

/** Reads a variable or its file, empty if unreadable, with the place to name in a message and how to fix it. */
function readNamed(environment: Environment, name: string) {
  const file = environment[`${name}_FILE`]
  if (!file) return { text: environment[name] ?? '', where: name, remedy: 'set it and start again' }
  if (environment[name]) return { text: '', where: `${name} or ${name}_FILE`, remedy: 'unset one and start again' }
  const where = `the file of ${name}_FILE`
  try {
    return { text: readSecretFile(file), where, remedy: 'write it again' }
  } catch (error) {
    return { text: '', where, remedy: `it cannot be read (${(error as Error).message})` }
  }
}

function problemOf(endpoint: Endpoint, environment: Environment): string | undefined {
  const { name, type } = endpoint
  // Of a contact nothing is known before a delivery, whose row says what is missing.
  if (type === 'subject') return undefined
  if (type === 'email') {
    if (environment[smtpVariable] || environment[`${smtpVariable}_FILE`]) return undefined
    return `${smtpVariable} (endpoint ${name}) must name the server that sends mail; set it and start again`
  }
  const isSlack = type === 'slack'
  const { text, where, remedy } = readNamed(environment, isSlack ? endpoint.urlEnv : endpoint.secretEnv)
  if (isSlack ? parseSlackUrl(text) !== undefined : parseSecrets(text).length > 0) return undefined
  const wanted = isSlack
    ? 'the URL of an incoming webhook'
    : 'whsec_ and 24 to 64 random bytes in base64, or two of them while one replaces the other'
  return `${where} (endpoint ${name}) must hold ${wanted}; ${remedy}`
}

/** The secrets and addresses of endpoints, as they are now. */
export type EndpointSecrets = ReturnType<typeof createEndpointSecrets>

/**
 * Reads what the environment has for the policy's endpoints, in a variable or in the file that NAME_FILE names, for
 * each delivery. An alert whose endpoint lacks something waits, and is tried again.
 */
export function createEndpointSecrets(policyInForce: () => Policy, environment: Environment, log: Logger) {
  let logged = ''
  const findProblems = (): readonly string[] => {
    const endpoints = [...policyInForce().endpoints.values()]
    const problems = endpoints.flatMap((endpoint) => problemOf(endpoint, environment) ?? [])
    if (problems.length > 0 && problems.join() !== logged) {
      log.warn({ problems }, 'endpoints that nothing can be sent to')
    }
    logged = problems.join()
    return problems
  }
  findProblems()
  return {
    /** Returns the current one first; none while the variable is missing or wrong. */
    signingSecrets: ({ secretEnv }: WebhookEndpoint) => parseSecrets(readNamed(environment, secretEnv).text),
    /** Returns undefined while the variable is missing or wrong. */
    slackUrl: ({ urlEnv }: SlackEndpoint) => parseSlackUrl(readNamed(environment, urlEnv).text),
    /** Returns a sentence for each endpoint that nothing can be sent to, and logs them when they have changed. */
    findProblems,
  }
}
