import type { Socket } from 'node:net'
import { type Metadata, ServerInterceptingCall, type ServerInterceptor, type StatusObject } from '@grpc/grpc-js'

/** Gateways open further connections beyond, and their calls take milliseconds. Each may hold a message of 2 MB. */
export const callsPerConnectionMax = 100
/** A message comes with its head; one over a slow network within seconds. */
const unfinishedMsMax = 10_000
/** As many messages of a connection may be this slow together. */
const [slowMs, slowCallsMax] = [1_000, 16]

type Begun = Parameters<ServerInterceptor>[1]

/**
 * Refuses calls before their message is read, and ends connections that leave messages unfinished: those would stay in
 * memory. One timer looks at all of them while there are any; a call that came whole is gone by then.
 */
export function createCallBounds(
  authorize: (authorization: string) => Pick<StatusObject, 'code' | 'details'> | undefined,
) {
  const sockets = new Map<string, Socket>()
  const unfinished = new Map<Begun, number>()
  let timer: NodeJS.Timeout | undefined
  const nameOf = (address = '', port = 0) => `${address} ${port}`

  const look = () => {
    const nowMs = performance.now()
    const slow = new Map<Socket, number>()
    for (const [call, sinceMs] of unfinished) {
      const { remoteAddress, remotePort } = call.getConnectionInfo()
      const socket = sockets.get(nameOf(remoteAddress, remotePort))
      if (socket === undefined || nowMs - sinceMs < slowMs) continue
      const count = (slow.get(socket) ?? 0) + 1
      slow.set(socket, count)
      if (count > slowCallsMax || nowMs - sinceMs > unfinishedMsMax) socket.destroy()
    }
    if (unfinished.size > 0) return
    clearInterval(timer)
    timer = undefined
  }

  const intercept: ServerInterceptor = ({ path }, call) => {
    unfinished.set(call, performance.now())
    timer ??= setInterval(look, slowMs).unref()
    const finish = () => void unfinished.delete(call)
    return new ServerInterceptingCall(call, {
      start: (next) =>
        next({
          onReceiveMetadata(metadata: Metadata, proceed) {
            // Probes of health have no token.
            const refusal = isOpen(path) ? undefined : authorize(`${metadata.get('authorization')[0] ?? ''}`)
            if (refusal === undefined) return proceed(metadata)
            finish()
            call.sendStatus(refusal)
          },
          onReceiveHalfClose(proceed) {
            finish()
            proceed()
          },
          onCancel() {
            finish()
          },
        }),
    })
  }

  return {
    intercept,
    /** Remembers a connection until it ends. */
    add(socket: Socket): void {
      const name = nameOf(socket.remoteAddress, socket.remotePort)
      sockets.set(name, socket)
      socket.once('close', () => sockets.delete(name))
    },
    close: () => clearInterval(timer),
  }
}

const isOpen = (path: string) => path.startsWith('/grpc.health.v1.Health/')
