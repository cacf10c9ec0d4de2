import { expect, it, onTestFinished } from 'vitest'
import type { Ports } from './ports.ts'
import { memoryPorts, openMemoryIngress, sha256 } from './testing/memory-ingress.ts'

const policyText = `
version: 1
plans: { free: { limits: [minute] } }
limits: { minute: { algorithm: fixed_window, size: 100, window: 1m } }
upstreams: { gone: { url: "http://127.0.0.1:1" } }
subjects: { acme: { plan: free, keys: [{ sha256: "${sha256('acme-key')}" }] } }
`

const broken = () => {
  throw new Error('broken')
}
const brokenLog = { append: broken, openCoalesced: broken, writtenInTime: broken, finallyWritten: broken }
const later = () => new Promise<void>((resolve) => setImmediate(resolve))

/** What breaks, each as it can: at once or after a turn of the event loop. */
const faults: Readonly<Record<string, (ports: Ports) => Partial<Ports>>> = {
  'the log of decisions throws': () => ({ log: brokenLog }),
  'the limit store throws': ({ store }) => ({ store: { ...store, decide: broken }, log: brokenLog }),
  'the limit store rejects later': ({ store }) => ({
    store: { ...store, decide: () => later().then(broken) },
    log: brokenLog,
  }),
  'the authenticator rejects': ({ authenticator }) => ({
    authenticator: { ...authenticator, authenticate: () => later().then(broken) },
  }),
  'the authenticator throws': ({ authenticator }) => ({ authenticator: { ...authenticator, authenticate: broken } }),
  'the address cannot be told': ({ authenticator }) => ({
    authenticator: { ...authenticator, addressOf: broken, authenticate: () => later().then(broken) },
  }),
}

async function open(fault: (ports: Ports) => Partial<Ports>) {
  const { authenticator: known, ...others } = memoryPorts(policyText)
  // As for tokens, whose signature takes a while.
  const authenticate: typeof known.authenticate = async (policy, request) => known.authenticate(policy, request)
  const ports: Ports = { ...others, authenticator: { ...known, authenticate } }
  return openMemoryIngress(policyText, { ...ports, ...fault(ports) })
}

it.each(Object.keys(faults))(
  'when %s every entry point answers 500 with a problem, and nothing is left unhandled',
  async (name) => {
    const unhandled: unknown[] = []
    const note = (error: unknown) => void unhandled.push(error)
    process.on('unhandledRejection', note)
    onTestFinished(() => void process.off('unhandledRejection', note))
    const { api, proxy } = await open(faults[name] ?? (() => ({})))
    const checks = [{}, {}, 7]
    const asked = [{ subject: 'acme' }, { key: 'nobody' }, { subject: 'acme' }]
    for (const headers of [{ 'x-api-key': 'acme-key' }, { 'x-api-key': 'wrong' }]) {
      const answers = [
        await api.inject({ method: 'POST', url: '/v1/check', headers, payload: {} }),
        await api.inject({ method: 'POST', url: '/v1/check/batch', headers, payload: { checks } }),
        await api.inject({ method: 'GET', url: '/v1/authorize/x', headers }),
        await proxy.inject({ method: 'GET', url: '/x', headers }),
      ]
      for (const { statusCode, headers: told, body } of answers) {
        expect([statusCode, told['content-type']]).toEqual([500, 'application/problem+json'])
        expect(JSON.parse(body)).toMatchObject({ type: 'urn:weir:problem:internal', status: 500 })
      }
    }
    if (!name.startsWith('the authenticator') && !name.startsWith('the address')) {
      const headers = { authorization: 'Bearer root' }
      const answer = await api.inject({ method: 'POST', url: '/v1/check/batch', headers, payload: { checks: asked } })
      expect(answer.statusCode).toBe(500)
    }
    await later()
    await later()
    expect(unhandled).toEqual([])
  },
)
