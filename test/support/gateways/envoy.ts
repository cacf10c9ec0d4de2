import { join } from 'node:path'
import { type Gateway, type GatewayOptions, snippet, startGateway } from './start-gateway.ts'

const listed = '- { exact: x-forwarded-for, ignore_case: true }'

/** Envoy with docs/integrations/envoy/envoy.yaml. `lists` is a header that costs are read from. */
export const startEnvoy = ({
  weirApi,
  upstream,
  whenAway = 'closed',
  lists,
}: GatewayOptions & { readonly lists?: string }): Promise<Gateway> =>
  startEnvoyWith('envoy/envoy.yaml', [
    ['port_value: 8081', `port_value: ${new URL(weirApi).port}`],
    ['port_value: 9000', `port_value: ${new URL(upstream).port}`],
    ...(lists === undefined
      ? []
      : [[listed, `${listed.replace('x-forwarded-for', lists)}\n                          ${listed}`] as const]),
    ['failure_mode_allow: false', `failure_mode_allow: ${whenAway === 'open'}`],
  ])

/** Envoy with docs/integrations/envoy/ratelimit.yaml, which asks at `host:port`. */
export const startEnvoyOverGrpc = (asks: {
  readonly grpc: string
  readonly upstream: string
  readonly whenAway?: 'closed' | 'open'
}): Promise<Gateway> =>
  startEnvoyWith('envoy/ratelimit.yaml', [
    ['port_value: 8082', `port_value: ${asks.grpc.split(':')[1]}`],
    ['port_value: 9000', `port_value: ${new URL(asks.upstream).port}`],
    ['failure_mode_deny: true', `failure_mode_deny: ${asks.whenAway !== 'open'}`],
    // Beside all the other tests an answer may take many times as long as it does in life.
    ['timeout: 0.5s', 'timeout: 20s'],
  ])

/**
 * Envoy with a file of docs/integrations, or one beside it, in which some text is replaced. It listens where the file
 * says port 80.
 */
export const startEnvoyWith = (file: string, replacements: readonly (readonly [string, string])[]): Promise<Gateway> =>
  startGateway(async (port) => {
    return {
      files: { 'envoy.yaml': await snippet(file, [...replacements, ['port_value: 80 }', `port_value: ${port} }`]]) },
      command,
    }
  })

/** Envoy with a configuration of the test's own, which is given the port to listen on. */
export const startEnvoyFrom = (configOf: (port: number) => object): Promise<Gateway> =>
  startGateway(async (port) => ({ files: { 'envoy.yaml': JSON.stringify(configOf(port)) }, command }))

/** With its own shared memory and one thread for requests: other tests and other Envoys run beside it. */
const command = (dir: string): readonly [string, ...string[]] => [
  ...(['envoy', '--disable-hot-restart', '--concurrency', '1'] as const),
  '--log-level',
  'error',
  '-c',
  join(dir, 'envoy.yaml'),
]
