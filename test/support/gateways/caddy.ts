import { join } from 'node:path'
import { type Gateway, type GatewayOptions, hostOf, snippet, startGateway } from './start-gateway.ts'

/**
 * Caddy with a file of docs/integrations/caddy. It refuses while Weir is away; there is no snippet for anything else.
 */
export const startCaddy = (
  { weirApi, upstream }: Omit<GatewayOptions, 'whenAway'>,
  file: 'weir.caddyfile' | 'weir-short.caddyfile' = 'weir.caddyfile',
): Promise<Gateway> =>
  startGateway(async (port) => {
    const site = await snippet(`caddy/${file}`, [
      ['127.0.0.1:8081', hostOf(weirApi)],
      ['127.0.0.1:9000', hostOf(upstream)],
      ['\n:80 {', `\n:${port} {`],
    ])
    return {
      files: { 'weir.caddyfile': `{\n\tadmin off\n\tauto_https off\n\tdefault_bind 127.0.0.1\n}\n\n${site}` },
      command: (dir) => ['caddy', 'run', '--adapter', 'caddyfile', '--config', join(dir, 'weir.caddyfile')],
    }
  })
