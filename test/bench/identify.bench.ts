import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingHttpHeaders } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { systemClock } from '@weir/core/clock.ts'
import { type Authenticator, createAuthenticator } from '@weir/identity/authenticate.ts'
import { createLivePolicy, type PolicyView } from '@weir/ingress/policy-view.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { type BenchOptions, type BenchReport, type BenchRow, spread } from './report.ts'

const callsPerRound = 200_000
const key = `weir_${randomBytes(32).toString('base64url')}`

interface Bench {
  readonly authenticator: Authenticator
  readonly view: PolicyView
  readonly socket: Socket
  readonly token: string
  close(): Promise<void>
}

async function openBench(): Promise<Bench> {
  const pair = await generateKeyPair('RS256')
  const keys = JSON.stringify({ keys: [{ ...(await exportJWK(pair.publicKey)), kid: 'one', alg: 'RS256' }] })
  const issuer = createHttpServer((_request, response) => response.end(keys)).listen(0, '127.0.0.1')
  const peers = createServer().listen(0, '127.0.0.1')
  await Promise.all([once(issuer, 'listening'), once(peers, 'listening')])
  const client = connect((peers.address() as AddressInfo).port, '127.0.0.1')
  const [socket] = await once(peers, 'connection')
  const url = `http://127.0.0.1:${(issuer.address() as AddressInfo).port}`
  // Of the size that an identity provider makes with a few claims.
  const token = await new SignJWT({ email: 'someone@example.com', scope: 'x'.repeat(300) })
    .setProtectedHeader({ alg: 'RS256', kid: 'one' })
    .setIssuer(url)
    .setSubject('acme')
    .setExpirationTime('1h')
    .sign(pair.privateKey)
  const authenticator = createAuthenticator({ clock: systemClock, log: createLogger('bench', 'warn') })
  return {
    ...{ authenticator, socket, token, view: createLivePolicy(requirePolicy(policyText(url), 'weir.yaml')).view },
    async close() {
      client.destroy()
      socket.destroy()
      peers.close()
      await authenticator.close()
      issuer.closeAllConnections()
      issuer.close()
    },
  }
}

const policyText = (issuer: string) => `
version: 1
limits: { minute: { algorithm: fixed_window, size: 10, window: 1m } }
plans: { free: { limits: [minute] } }
subjects: { acme: { plan: free, keys: [{ sha256: ${createHash('sha256').update(key).digest('hex')} }] } }
identity:
  jwt: [{ issuer: "${issuer}", jwksUrl: "${issuer}", allowPrivate: true }]
  trustedProxies: [127.0.0.1]
  anonymous: free
`

/** Nanoseconds of this process a call. */
function measure({ authenticator, view, socket }: Bench, headersOf: (call: number) => IncomingHttpHeaders): number {
  const before = process.cpuUsage()
  for (let call = 0; call < callsPerRound; call += 1) {
    void authenticator.authenticate(view.policy, { headers: headersOf(call), url: '/v1/things', socket })
  }
  const { user, system } = process.cpuUsage(before)
  return ((user + system) * 1_000) / callsPerRound
}

/** What telling callers apart costs, by how they say who they are. */
export async function run({ rounds, progress }: BenchOptions): Promise<BenchReport> {
  const bench = await openBench()
  const group = (call: number) => (call % 50_000).toString(16)
  const cases: Record<string, (call: number) => IncomingHttpHeaders> = {
    'API key in X-API-Key': () => ({ 'x-api-key': key }),
    'API key as Bearer': () => ({ authorization: `Bearer ${key}` }),
    [`token of ${bench.token.length} characters, seen before`]: () => ({ authorization: `Bearer ${bench.token}` }),
    'address of the peer': () => ({}),
    'address behind a proxy, another each time': (call) => ({ 'x-forwarded-for': `198.51.100.${call % 250}` }),
    'the same, IPv6': (call) => ({ 'x-forwarded-for': `2001:db8:7:${group(call)}::1` }),
    'wrong key, too many from its address': (call) => ({ 'x-api-key': `${key}${call}` }),
  }
  const figures = new Map(Object.keys(cases).map((label) => [label, [] as number[]]))
  try {
    const { authenticator, view, socket, token } = bench
    await authenticator.authenticate(view.policy, { headers: { authorization: `Bearer ${token}` }, url: '/', socket })
    for (const headersOf of Object.values(cases)) measure(bench, headersOf)
    for (let round = 1; round <= rounds; round += 1) {
      progress(`round ${round} of ${rounds}`)
      for (const [label, headersOf] of Object.entries(cases)) figures.get(label)?.push(measure(bench, headersOf))
    }
  } finally {
    await bench.close()
  }
  const rows: BenchRow[] = [...figures].map(([label, values]) => ({ label, unit: 'ns CPU a call', ...spread(values) }))
  return { name: 'identify', rows, ratios: [] }
}
