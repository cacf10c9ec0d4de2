import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts } from '@weir/runtime/ports.ts'
import { goProgram } from '../../support/go-program.ts'
import { answersOk, startProcess } from '../../support/start-process.ts'

interface ReferenceOptions {
  /** `redis://host:port`; its keys begin with `prefix`, so that it may be shared. */
  readonly redisUrl: string
  readonly prefix: string
  /** Configuration files by name, such as `rl.yaml`. */
  readonly files: Readonly<Record<string, string>>
}

/** Starts it on free ports and waits until it is healthy, which it is once its configuration is read. */
export async function startReferenceServer({ redisUrl, prefix, files }: ReferenceOptions) {
  const redis = new URL(redisUrl)
  const program = await goProgram({
    name: 'envoy-ratelimit',
    module: import.meta.dirname,
    version: 'v1.4.1-0.20230427142404-e2a87f41d3a7',
    path: 'github.com/envoyproxy/ratelimit/src/service_cmd',
  })
  const dir = await mkdtemp(join(tmpdir(), 'weir-bench-envoy-ratelimit-'))
  await mkdir(join(dir, 'ratelimit', 'config'), { recursive: true })
  for (const [name, text] of Object.entries(files)) await writeFile(join(dir, 'ratelimit', 'config', name), text)
  const [httpPort, grpcPort, debugPort] = await freePorts(3)
  const running = await startProcess([program], {
    name: 'envoyproxy/ratelimit',
    logFile: join(dir, 'server.log'),
    cwd: dir,
    env: {
      ...process.env,
      USE_STATSD: 'false',
      LOG_LEVEL: 'warn',
      CACHE_KEY_PREFIX: prefix,
      REDIS_SOCKET_TYPE: 'tcp',
      REDIS_URL: redis.host,
      REDIS_AUTH: decodeURIComponent(redis.password),
      RUNTIME_ROOT: dir,
      RUNTIME_SUBDIRECTORY: 'ratelimit',
      RUNTIME_APPDIRECTORY: 'config',
      RUNTIME_WATCH_ROOT: 'false',
      RUNTIME_IGNOREDOTFILES: 'true',
      HOST: '127.0.0.1',
      GRPC_HOST: '127.0.0.1',
      DEBUG_HOST: '127.0.0.1',
      PORT: String(httpPort),
      GRPC_PORT: String(grpcPort),
      DEBUG_PORT: String(debugPort),
    },
    ready: () => answersOk(`http://127.0.0.1:${httpPort}/healthcheck`),
    deadlineMs: 30_000,
  })
  return {
    /** `host:port` of its gRPC door. */
    grpc: `127.0.0.1:${grpcPort}`,
    pid: running.pid,
    /** Ends it and removes its folder. */
    async close() {
      await running.end('SIGKILL')
      await rm(dir, { recursive: true, force: true })
    },
  }
}
