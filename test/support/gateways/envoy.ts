import { join } from 'node:path'
import { envoyProgram } from './envoy-program.ts'
import { type Gateway, type GatewayOptions, snippet, startGateway } from './start-gateway.ts'

/** Envoy with docs/integrations/envoy/envoy.yaml. */
export const startEnvoy = ({ weirApi, upstream, whenAway = 'closed' }: GatewayOptions): Promise<Gateway> =>
  startGateway(async (port) => {
    const program = await envoyProgram()
    return {
      needs: undefined,
      files: {
        'envoy.yaml': await snippet('envoy/envoy.yaml', [
          ['port_value: 8081', `port_value: ${new URL(weirApi).port}`],
          ['port_value: 9000', `port_value: ${new URL(upstream).port}`],
          ['port_value: 80 }', `port_value: ${port} }`],
          ['failure_mode_allow: false', `failure_mode_allow: ${whenAway === 'open'}`],
        ]),
      },
      // Its own shared memory and one thread for requests: other tests and other Envoys run beside it.
      command: (dir) => [
        program,
        '--disable-hot-restart',
        '--concurrency',
        '1',
        '--log-level',
        'error',
        '-c',
        join(dir, 'envoy.yaml'),
      ],
    }
  })
