import { join } from 'node:path'
import { type Gateway, type GatewayOptions, hostOf, snippet, startGateway } from './start-gateway.ts'

/** HAProxy with docs/integrations/haproxy/haproxy.cfg and weir.lua. */
export const startHaproxy = ({ weirApi, upstream, whenAway = 'closed' }: GatewayOptions): Promise<Gateway> =>
  startGateway(async (port) => ({
    files: {
      'haproxy.cfg': await snippet('haproxy/haproxy.cfg', [
        ['/etc/haproxy/weir.lua', 'weir.lua'],
        ['lua.weir abns@weir closed', `lua.weir abns@weir-${port} ${whenAway}`],
        ['bind abns@weir\n', `bind abns@weir-${port}\n`],
        ['127.0.0.1:8081', hostOf(weirApi)],
        ['127.0.0.1:9000', hostOf(upstream)],
        ['bind 127.0.0.1:80 ', `bind 127.0.0.1:${port} `],
      ]),
      'weir.lua': await snippet('haproxy/weir.lua', []),
    },
    command: (dir) => ['haproxy', '-db', '-f', join(dir, 'haproxy.cfg')],
  }))
