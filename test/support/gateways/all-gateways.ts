import type { MemoryDecisionLog } from '@weir/decide/testing/memory-decision-log.ts'
import { startCaddy } from './caddy.ts'
import { startEnvoy, startEnvoyOverGrpc } from './envoy.ts'
import { startHaproxy } from './haproxy.ts'
import { startNginx } from './nginx.ts'
import { startPlainUpstream } from './plain-upstream.ts'
import { type Sent, send } from './send.ts'
import type { Gateway } from './start-gateway.ts'
import { openWeirApps } from './weir-apps.ts'

interface Behind {
  readonly weirApi: string
  readonly grpc: string
  readonly upstream: string
}

const open = { whenAway: 'open' } as const

/** Each gateway of docs/integrations; those with `open` serve what they cannot ask about. Envoy lists X-Units. */
export const gatewayStarts = {
  nginx: (behind) => startNginx(behind),
  'nginx, open': (behind) => startNginx({ ...behind, ...open }),
  caddy: (behind) => startCaddy(behind),
  'caddy, short': (behind) => startCaddy(behind, 'weir-short.caddyfile'),
  haproxy: (behind) => startHaproxy(behind),
  'haproxy, open': (behind) => startHaproxy({ ...behind, ...open }),
  envoy: (behind) => startEnvoy({ ...behind, lists: 'x-units' }),
  'envoy, open': (behind) => startEnvoy({ ...behind, lists: 'x-units', ...open }),
  'envoy, gRPC': (behind) => startEnvoyOverGrpc(behind),
  'envoy, gRPC, open': (behind) => startEnvoyOverGrpc({ ...behind, ...open }),
} satisfies Readonly<Record<string, (behind: Behind) => Promise<Gateway>>>

export type GatewayName = keyof typeof gatewayStarts

type ProgramOf<Name> = Name extends `${infer Program}, ${string}` ? Program : Name
/** The program of a gateway, however it is configured. */
export type GatewayProgram = ProgramOf<GatewayName>

/** Gateways before one Weir and one upstream. */
export type Gateways = Awaited<ReturnType<typeof openGateways>>

/** Starts Weir with the policy, and the named gateways before it. `log` is asked instead of the memory's. */
export async function openGateways(policy: string, names: readonly GatewayName[], log?: MemoryDecisionLog) {
  const upstream = await startPlainUpstream()
  const weir = await openWeirApps(policy, log)
  const behind = { weirApi: weir.api, grpc: weir.grpc, upstream: upstream.url }
  const started = await Promise.all(names.map(async (name) => [name, await gatewayStarts[name](behind)] as const))
  const origins = new Map<string, string>(started.map(([name, { url }]) => [name, url]))
  return {
    weir,
    upstream,
    origins,
    send: (gateway: string, sent: Sent) => send(origins.get(gateway) ?? '', sent),
    async close() {
      await Promise.all(started.map(([, gateway]) => gateway.close()))
      await weir.close()
      await upstream.close()
    },
  }
}
