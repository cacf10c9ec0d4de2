import type { Server } from 'node:http'
import { isIP, type Socket } from 'node:net'
import { Server as SecureServer } from 'node:tls'
import { plainAddress } from '@weir/runtime/address-scope.ts'

/** A balancer sends its header with the first bytes. */
const headerMsMax = 5_000
/** Addresses take 52 bytes, and what balancers add after them some hundred. */
const headerBytesMax = 4_096
const signature = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')

/** What begins a connection: how long it is, and the client's address, empty where the balancer speaks for itself. */
export interface ProxyHeader {
  readonly length: number
  readonly address: string
}

/**
 * Reads a header of the PROXY protocol, version 1 or 2, by HAProxy's proxy-protocol.txt. `more` while it is not whole;
 * undefined for anything else.
 */
export function readProxyHeader(bytes: Buffer): ProxyHeader | 'more' | undefined {
  if (bytes.length < 16) return isBegun(bytes) ? 'more' : undefined
  return bytes.subarray(0, 12).equals(signature) ? readBinary(bytes) : readText(bytes)
}

const isBegun = (bytes: Buffer) =>
  [signature, Buffer.from('PROXY ')].some((begin) => {
    const length = Math.min(bytes.length, begin.length)
    return bytes.subarray(0, length).equals(begin.subarray(0, length))
  }) && !bytes.includes('\n', 12)

function readText(bytes: Buffer): ProxyHeader | 'more' | undefined {
  const line = bytes.toString('latin1', 0, 107) // the longest, with its end
  const end = line.indexOf('\r\n')
  if (end === -1) return line.startsWith('PROXY ') && line.length < 107 ? 'more' : undefined
  const [, family, address = ''] =
    /^PROXY (?:UNKNOWN(?: .*)?|(TCP4|TCP6) (\S+) \S+ \d{1,5} \d{1,5})$/.exec(line.slice(0, end)) ?? []
  const isRight = line.startsWith('PROXY UNKNOWN') || (family !== undefined && isIP(address) === Number(family[3]))
  return isRight ? { length: end + 2, address } : undefined
}

function readBinary(bytes: Buffer): ProxyHeader | 'more' | undefined {
  const [command, family, length] = [bytes[12] ?? 0, bytes[13] ?? 0, 16 + bytes.readUInt16BE(14)]
  if (command >> 4 !== 2 || (command & 15) > 1 || length > headerBytesMax) return undefined
  if (bytes.length < length) return 'more'
  const address = (command & 15) === 0 ? '' : addressOf(family >> 4, bytes.subarray(16, length))
  return address === undefined ? undefined : { length, address }
}

/** Of other families than IP the client has no address that limits know. */
function addressOf(family: number, bytes: Buffer): string | undefined {
  if (family === 1) return bytes.length < 12 ? undefined : bytes.subarray(0, 4).join('.')
  if (family !== 2) return ''
  if (bytes.length < 36) return undefined
  return Array.from({ length: 8 }, (_, at) => bytes.readUInt16BE(2 * at).toString(16)).join(':')
}

/**
 * Lets trusted peers begin each connection with a header of the PROXY protocol, whose address is the connection's from
 * then on. They must: one that left it out would pass on what its clients write. All others are served as without.
 */
export function acceptProxyHeaders(server: Server, isTrusted: (address: string) => boolean): void {
  const serves = server.listeners('connection') as ((this: Server, socket: Socket) => void)[]
  const isSecure = server instanceof SecureServer
  const addresses = new Map<string, string>()
  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) => {
    const serve = () => {
      for (const one of serves) one.call(server, socket)
    }
    if (!isTrusted(plainAddress(socket.remoteAddress ?? ''))) return serve()
    whenHeaderCame(socket, (address) => {
      const name = nameOf(socket)
      if (address !== '' && isSecure) {
        addresses.set(name, address)
        socket.once('close', () => addresses.delete(name))
      } else if (address !== '') setAddress(socket, address)
      serve()
      // TLS takes what came along by itself.
      if (!isSecure) process.nextTick(() => socket.resume())
    })
  })
  // The connection within TLS is another object.
  server.prependListener('secureConnection', (socket: Socket) => {
    const address = addresses.get(nameOf(socket))
    if (address !== undefined) setAddress(socket, address)
  })
}

const nameOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`
const setAddress = (socket: Socket, value: string) => Object.defineProperty(socket, 'remoteAddress', { value })

/** Takes the header off the connection; one without is closed. */
function whenHeaderCame(socket: Socket, then: (address: string) => void): void {
  let bytes = Buffer.alloc(0)
  const close = () => socket.destroy()
  const timer = setTimeout(close, headerMsMax)
  const read = (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk])
    const header = readProxyHeader(bytes)
    if (header === 'more') return
    clearTimeout(timer)
    if (header === undefined) return close()
    socket.pause()
    socket.off('data', read).off('error', close)
    if (bytes.length > header.length) socket.unshift(bytes.subarray(header.length))
    then(header.address)
  }
  socket.on('data', read).on('error', close)
  socket.once('close', () => clearTimeout(timer))
}
