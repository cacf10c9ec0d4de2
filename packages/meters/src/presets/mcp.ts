import type { Fact } from '../json-pick.ts'
import { presetUnits } from '../meter.ts'
import type { Preset, RequestReading } from './preset.ts'

/** JSON-RPC of the Model Context Protocol over HTTP (modelcontextprotocol.io): one message, or several in a list. */
const patterns = ['/method', '/params/name', '/*/method', '/id'] as const
/** Clients number their messages, or name them by a UUID. */
const idBytesMax = 128

const canBeReflected = (fact: Fact): fact is Extract<Fact, { kind: 'text' | 'number' }> =>
  fact.kind === 'number' ? Number.isSafeInteger(fact.value) : fact.kind === 'text' && fact.size <= idBytesMax

/** Only calls of tools count: to begin a session, to list tools and to listen cost nothing. */
class McpRequest implements RequestReading {
  #calls = 0
  #tool = ''
  #id: string | number | undefined
  #isRequest = false

  found(pattern: number, fact: Fact): void {
    const at = patterns[pattern]
    if (at === '/id' && canBeReflected(fact)) this.#id = fact.value
    if (fact.kind !== 'text') return
    if (at === '/method') this.#isRequest = true
    if (at === '/params/name') this.#tool = fact.value
    else if ((at === '/method' || at === '/*/method') && fact.value === 'tools/call') this.#calls += 1
  }

  measured() {
    const dimensions: Record<string, string> = this.#calls === 0 ? {} : { tool: this.#tool }
    // A client's response has the id of the server's message, which is another's.
    const id = this.#isRequest ? this.#id : undefined
    return { most: { calls: this.#calls }, dimensions, isDeferred: false, id }
  }
}

/** Servers of the Model Context Protocol. Their answers change nothing. */
export const mcp: Preset = {
  units: presetUnits.mcp,
  dimensions: ['tool'],
  requestPatterns: patterns,
  answerPatterns: [],
  readRequest: () => new McpRequest(),
}
