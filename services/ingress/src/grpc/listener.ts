import { createServer, type Server as Listener, type Socket } from 'node:net'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { Server, ServerCredentials, type ServiceDefinition } from '@grpc/grpc-js'
import { loadSync, type PackageDefinition } from '@grpc/proto-loader'
import { ReflectionService } from '@grpc/reflection'
import type { DecisionService } from '@weir/decide/decision-service.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import type { ListenerTls } from '@weir/runtime/tls-listener.ts'
import { HealthImplementation, protoPath as healthProto } from 'grpc-health-check'
import type { Ports } from '../ports.ts'
import { callsPerConnectionMax, createConnectionBounds } from './bound-calls.ts'
import { createShouldRateLimit } from './rate-limit-service.ts'

const serviceName = 'envoy.service.ratelimit.v3.RateLimitService'
/**
 * All the headers of a request in each of 32 descriptors, at the 60 kB that Envoy takes: beyond is an error, by which
 * Envoy would let a request through. A usual call has a few hundred bytes.
 */
const messageBytesMax = 2_097_152
/** Calls take milliseconds; a client that watches the health would stay for ever. */
const graceMs = 2_000

/** Envoy's rate limit service, with gRPC's own health and reflection. Opens nothing before `listen`. */
export function createGrpcListener(
  ports: Ports,
  decisionService: DecisionService,
  adminTokenSha256: () => string,
  log: Logger,
  tls?: ListenerTls,
) {
  const definitions = loadDefinitions()
  const bounds = createConnectionBounds()
  const server = new Server({
    'grpc.max_receive_message_length': messageBytesMax,
    'grpc.enable_channelz': 0,
    'grpc.max_concurrent_streams': callsPerConnectionMax,
  })
  server.addService(serviceOf(definitions), {
    ShouldRateLimit: createShouldRateLimit(ports, decisionService, adminTokenSha256, bounds.complete, log),
  })
  const health = new HealthImplementation({ '': 'SERVING', [serviceName]: 'SERVING' })
  health.addToServer(server)
  new ReflectionService(definitions).addToServer(server)
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure())
  const listener = createListener((socket) => {
    bounds.add(socket)
    injector.injectConnection(socket)
  }, tls)
  return {
    server: listener,
    listen: (at: { readonly host: string; readonly port: number; readonly reusePort: boolean }) =>
      new Promise<void>((done, fail) => {
        listener.once('error', fail)
        listener.listen(at as object, done)
      }),
    /** Accepts no new calls, lets those under way end, and hangs up on the clients that stay. */
    async close(): Promise<void> {
      for (const name of ['', serviceName]) health.setStatus(name, 'NOT_SERVING')
      const closed = new Promise<void>((done) => listener.close(() => done()))
      // Says goodbye to every connection, which then ends with its last call; gRPC's own shutdown does not wait for
      // injected ones.
      injector.drain(graceMs)
      const deadline = setTimeout(() => injector.destroy(), graceMs)
      await closed
      clearTimeout(deadline)
      bounds.close()
      server.forceShutdown()
    },
  }
}

/** A listener of our own, because gRPC's cannot share its port with other processes. */
function createListener(inject: (socket: Socket) => void, tls: ListenerTls | undefined): Listener {
  if (tls === undefined) return createServer({ noDelay: true }, inject)
  const options = { ...tls.options, noDelay: true, allowHalfOpen: false, ALPNProtocols: ['h2'] }
  const listener = createTlsServer(options, (socket) => {
    // A client that names only other protocols is refused in the handshake, one that names none is not.
    if (socket.alpnProtocol === 'h2') inject(socket)
    else socket.destroy()
  })
  // Node leaves a connection open whose handshake fails or takes too long.
  return listener.on('tlsClientError', (_error, socket) => socket.destroy())
}

/** With the names in camel case, every field there, and 64-bit numbers as numbers. */
function loadDefinitions(): PackageDefinition {
  const options = { longs: Number, defaults: true, includeDirs: [join(import.meta.dirname, 'proto')] }
  return { ...loadSync('rls.proto', options), ...loadSync(healthProto, options) }
}

function serviceOf(definitions: PackageDefinition): ServiceDefinition {
  const found = definitions[serviceName]
  if (found === undefined || 'format' in found) throw new TypeError(`the proto files have no ${serviceName}`)
  return found
}
