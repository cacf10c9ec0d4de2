import { createRlsClient, type RlsClient } from '../envoy-ratelimit/rls-client.ts'
import type { SeededRandom } from '../seeded-random.ts'
import { type Doors, workAt } from './exchanges.ts'

/** Each has a connection of its own, so that both processes have some, with at most a hundred calls each. */
const clientsCount = 16
/** How long a gateway waits for an answer. */
const deadlineMs = 5_000

/** The clients of a gateway that asks over gRPC. */
export async function openGateway(address: string) {
  const clients: RlsClient[] = []
  for (let at = 0; at < clientsCount; at += 1) clients.push(await createRlsClient(address, { isAlone: true }))
  return {
    pick: (random: SeededRandom) => clients[random.integer(0, clientsCount - 1)] as RlsClient,
    close() {
      for (const client of clients) client.close()
    },
  }
}

type Gateway = Pick<Awaited<ReturnType<typeof openGateway>>, 'pick'>

/** The exchanges of a gateway's user, as Envoy makes them: a slot is taken, and given back at the end. */
export class GatewayExchanges {
  readonly user: string
  readonly counts = { passed: 0, refused: 0, lost: 0 }
  readonly #gateway: Gateway
  readonly #doors: Doors

  constructor(user: string, gateway: Gateway, doors: Doors) {
    this.user = user
    this.#gateway = gateway
    this.#doors = doors
  }

  /** By whom the upstream counts them. */
  get subject(): string {
    return `gateway:${this.user}`
  }

  async exchange(random: SeededRandom): Promise<void> {
    const client = this.#gateway.pick(random)
    const descriptor = { entries: [{ key: 'user', value: this.user }], hits_addend: { value: 1 } }
    const call = (isBack: boolean, signal?: AbortSignal) =>
      client
        .shouldRateLimit(
          { domain: 'streams', descriptors: [isBack ? { ...descriptor, is_negative_hits: true } : descriptor] },
          {},
          signal === undefined ? { deadlineMs } : { deadlineMs, signal },
        )
        .catch(() => undefined)
    const hangsUp = random.oneIn(8) ? AbortSignal.timeout(random.integer(1, 100)) : undefined
    const taken = await call(false, hangsUp)
    if (taken === undefined) {
      // Whether it has a slot is not known: one that it has ends by itself, or was given back as its client left.
      this.counts.lost += 1
      return
    }
    const isIn = taken.overall_code === 'OK'
    this.counts[isIn ? 'passed' : 'refused'] += 1
    if (isIn) await workAt(this.#doors.upstream, this.subject, random.integer(0, this.#doors.longestMs))
    // As Envoy does, also what was refused; and once, as whether an unanswered one was done is not known.
    await call(true)
  }
}
