import type { ManualBlock } from '@weir/policy/policy.ts'
import { ipv6Groups } from '@weir/runtime/address-scope.ts'

/** A subject with those above it, which are blocked along with them. */
interface Family {
  readonly id: string
  readonly parent?: Family | undefined
}

/** Who asks, as records have it. */
interface Asking {
  readonly subject: Family
  readonly keyId: string
  /** As `addressScope` writes it; empty for not known. */
  readonly ip: string
}

/** The blocks of networks of one family, by the length of their prefix and their first bits. */
type Networks<Bits> = Map<number, Map<Bits, ManualBlock[]>>

const wordBits = 32
/** The first bits of a word of 32 bits. */
const masked = (word: number, bits: number) =>
  bits <= 0 ? 0 : bits >= wordBits ? word : word - (word % 2 ** (wordBits - bits))

/** An IPv4 address as a number. Read digit by digit: it runs for each request, where any network is blocked. */
function ipv4Word(ip: string): number {
  let [word, part] = [0, 0]
  for (let at = 0; at < ip.length; at += 1) {
    const code = ip.charCodeAt(at)
    if (code === 46) {
      word = word * 256 + part
      part = 0
    } else part = part * 10 + code - 48
  }
  return word * 256 + part
}

/** A caller of IPv6 is a network of at most 64 bits: two words. */
const ipv6BitsMax = 64

/** The two first words of an IPv6 address, with or without a prefix behind it. */
function ipv6Words(ip: string): readonly [number, number] {
  const [a = 0, b = 0, c = 0, d = 0] = ipv6Groups(ip.replace(/\/\d+$/, ''))
  return [a * 65_536 + b, c * 65_536 + d]
}

const ipv6Bits = ([high, low]: readonly [number, number], prefix: number) =>
  `${masked(high, prefix)}:${masked(low, prefix - wordBits)}`

function addTo<K>(to: Map<K, ManualBlock[]>, key: K, block: ManualBlock): void {
  const blocks = to.get(key)
  if (blocks === undefined) to.set(key, [block])
  else blocks.push(block)
}

function addNetwork<Bits>(to: Networks<Bits>, prefix: number, bits: Bits, block: ManualBlock): void {
  const ofLength = to.get(prefix) ?? new Map<Bits, ManualBlock[]>()
  to.set(prefix, ofLength)
  addTo(ofLength, bits, block)
}

const none: readonly ManualBlock[] = []

function inNetworks<Bits>(networks: Networks<Bits>, bitsOf: (prefix: number) => Bits): readonly ManualBlock[] {
  let found = none
  for (const [prefix, ofLength] of networks) {
    const blocks = ofLength.get(bitsOf(prefix))
    if (blocks !== undefined) found = found.length === 0 ? blocks : [...found, ...blocks]
  }
  return found
}

/** Blocks and exemptions that people made, found by who asks. Made once for each policy. */
export class ManualBlocks {
  readonly size: number
  readonly #bySubject = new Map<string, ManualBlock[]>()
  readonly #byKey = new Map<string, ManualBlock[]>()
  readonly #ipv4: Networks<number> = new Map()
  readonly #ipv6: Networks<string> = new Map()

  constructor(blocks: ReadonlyMap<string, ManualBlock>) {
    this.size = blocks.size
    for (const block of blocks.values()) {
      if (block.subject !== undefined) addTo(this.#bySubject, block.subject, block)
      if (block.keyId !== undefined) addTo(this.#byKey, block.keyId, block)
      if (block.network === undefined) continue
      const [address = '', length] = block.network.split('/')
      if (address.includes(':')) {
        const prefix = Math.min(ipv6BitsMax, Number(length))
        addNetwork(this.#ipv6, prefix, ipv6Bits(ipv6Words(address), prefix), block)
      } else addNetwork(this.#ipv4, Number(length), masked(ipv4Word(address), Number(length)), block)
    }
  }

  /** Returns what stands of the caller: a block before an exemption, and of blocks the one that ends last. */
  of({ subject, keyId, ip }: Asking, nowMs: number): ManualBlock | undefined {
    const ofSubject = this.#ofSubject(subject)
    const ofKey = keyId === '' ? none : (this.#byKey.get(keyId) ?? none)
    const ofAddress = this.#ofAddress(ip)
    if (ofSubject.length + ofKey.length + ofAddress.length === 0) return undefined
    const standing = [...ofSubject, ...ofKey, ...ofAddress].filter(({ untilMs }) => nowMs < untilMs)
    const exemption = standing.find(({ isExempt }) => isExempt)
    // An exempt address is not blocked by its address, but as a subject or a key all the same.
    const blocks = standing.filter((one) => !one.isExempt && (exemption === undefined || one.network === undefined))
    return blocks.toSorted((a, b) => b.untilMs - a.untilMs)[0] ?? exemption
  }

  #ofSubject({ id, parent }: Family): readonly ManualBlock[] {
    const own = this.#bySubject.get(id) ?? none
    if (parent === undefined) return own
    const above = this.#ofSubject(parent)
    return above.length === 0 ? own : [...own, ...above]
  }

  #ofAddress(ip: string): readonly ManualBlock[] {
    if (ip === '') return none
    if (ip.includes(':')) {
      if (this.#ipv6.size === 0) return none
      const words = ipv6Words(ip)
      return inNetworks(this.#ipv6, (prefix) => ipv6Bits(words, prefix))
    }
    if (this.#ipv4.size === 0) return none
    const word = ipv4Word(ip)
    return inNetworks(this.#ipv4, (prefix) => masked(word, prefix))
  }
}
