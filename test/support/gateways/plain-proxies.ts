import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Gateway, startGateway } from './start-gateway.ts'

const frameFile = join(import.meta.dirname, '../../../examples/nginx/nginx.conf')

/** nginx, Caddy and HAProxy as plain reverse proxies of one upstream, `host:port`, with their defaults. */
export const plainProxies: Readonly<Record<'nginx' | 'caddy' | 'haproxy', (upstream: string) => Promise<Gateway>>> = {
  nginx: (upstream) =>
    startGateway(async (port) => {
      const proxy = `proxy_pass http://${upstream}; proxy_http_version 1.1; proxy_set_header Host $http_host;`
      // HTTP/1.0 to the upstream, the upstream's name as Host, and whole bodies first, are defaults of its own alone.
      const streams = 'proxy_set_header Connection ""; proxy_buffering off; proxy_request_buffering off;'
      return {
        files: {
          'nginx.conf': await readFile(frameFile, 'utf8'),
          'weir-blocked.conf': '',
          'weir.conf': `server { listen 127.0.0.1:${port}; location / { ${proxy} ${streams} } }`,
        },
        command: (dir) => ['nginx', '-p', dir, '-e', 'stderr', '-c', join(dir, 'nginx.conf')],
      }
    }),
  caddy: (upstream) =>
    startGateway(async (port) => ({
      files: {
        Caddyfile: `{\n\tadmin off\n\tauto_https off\n\tdefault_bind 127.0.0.1\n}\n:${port} {\n\treverse_proxy ${upstream}\n}\n`,
      },
      command: (dir) => ['caddy', 'run', '--adapter', 'caddyfile', '--config', join(dir, 'Caddyfile')],
    })),
  haproxy: (upstream) =>
    startGateway(async (port) => ({
      files: {
        'haproxy.cfg': [
          'defaults\n mode http\n timeout connect 5s\n timeout client 30s\n timeout server 30s\n timeout tunnel 30s',
          `frontend f\n bind 127.0.0.1:${port}\n default_backend b\nbackend b\n server s ${upstream}\n`,
        ].join('\n'),
      },
      command: (dir) => ['haproxy', '-db', '-f', join(dir, 'haproxy.cfg')],
    })),
}
