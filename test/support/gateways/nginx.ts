import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Gateway, type GatewayOptions, hostOf, snippet, startGateway } from './start-gateway.ts'

/** One process, so that nothing of it outlives the test; its files in its own folder, which paths are relative to. */
const plainFrame = readFileSync(resolve(import.meta.dirname, '../../../examples/nginx/nginx.conf'), 'utf8')
/** An http context whose settings would allow what Weir refuses, if the snippet inherited them. */
const frame = plainFrame.replace('http {', 'http { proxy_intercept_errors on; error_page 403 502 =200 /;')

/** A single process cannot read its files again. Its workers run as the user of the test. */
const user = process.getuid?.() === 0 ? 'user root root;' : ''
const reloadable = (text: string) => text.replace('master_process off;', `worker_processes 1; ${user}`)

/** nginx with docs/integrations/nginx/weir.conf. */
export const startNginx = ({
  weirApi,
  upstream,
  whenAway = 'closed',
  refusesBlocked = false,
}: GatewayOptions): Promise<Gateway> =>
  startGateway(async (port) => ({
    files: {
      'nginx.conf': refusesBlocked ? reloadable(frame) : frame,
      'weir.conf': await snippet('nginx/weir.conf', [
        ['127.0.0.1:8081', hostOf(weirApi)],
        ['127.0.0.1:9000', hostOf(upstream)],
        ['127.0.0.1:80;', `127.0.0.1:${port};`],
        // As people raise it for uploads: 1 MB is nginx's own bound.
        ['location / {', 'location / { client_max_body_size 50m;'],
        ...(whenAway === 'open'
          ? [['# include /etc/nginx/weir-fail-open.conf;', 'include weir-fail-open.conf;'] as const]
          : []),
        ...(refusesBlocked ? [['# if ($weir_blocked)', 'if ($weir_blocked)'] as const] : []),
      ]),
      'weir-blocked.conf': await snippet('nginx/weir-blocked.conf', [
        ['include /etc/nginx/weir-blocked.list;', 'include weir-blocked.list;'],
      ]),
      'weir-blocked.list': '',
      'weir-fail-open.conf': await snippet('nginx/weir-fail-open.conf', []),
    },
    ...(refusesBlocked ? { endsBy: 'SIGTERM' as const } : {}),
    command: (dir) => ['nginx', '-p', dir, '-e', 'stderr', '-c', join(dir, 'nginx.conf')],
  }))
