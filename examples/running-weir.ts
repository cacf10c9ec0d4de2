import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import type { Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import type { CommandContext } from '@weir/cli/command-context.ts'
import { askConsole, type ConsoleRequest } from '@weir/cli/console/console-client.ts'
import { inProject } from '@weir/cli/project.ts'
import { readStateFile } from '@weir/cli/read-state-file.ts'
import { WeirError } from '@weir/core/errors.ts'
import { freePorts } from '@weir/runtime/ports.ts'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { parse } from 'yaml'

/** Changes are in force, and decisions counted, within seconds; a busy machine may take many times that. */
const deadlineMs = 60_000
/** Should an example be killed, what it made opens nothing from then on. */
const credentialsEnd = () => new Date(Date.now() + 12 * 3_600_000).toISOString()

/** What the weir.yaml of an example may have. */
interface Parts {
  readonly identity?: { readonly trustedProxies: readonly string[] }
  readonly rateCards?: Readonly<Record<string, object>>
  readonly limits?: Readonly<Record<string, object>>
  readonly upstreams?: Readonly<Record<string, object>>
  readonly plans?: Readonly<Record<string, object>>
  readonly routes?: readonly { readonly match: string }[]
}

/**
 * The `weir up` that an example works on. At its end the example takes away all that it has added to the policy; what
 * was decided stays counted.
 */
export class RunningWeir {
  /** The ingress, in front of upstreams. */
  readonly proxy: string
  /** Where applications and gateways ask. */
  readonly api: string
  /** The console's page and the admin API. */
  readonly console: string
  /** `host:port` of Kafka, for readers without a password. */
  readonly kafka: string
  readonly #dataDir: string
  readonly #token: string
  readonly #context: CommandContext
  readonly #undo: (() => unknown)[] = []
  #hasEnded = false

  /** Throws CONFIG_INVALID where no `weir up` has run on the data directory. */
  constructor(dataDir: string, context: CommandContext) {
    const read = (name: 'ingress' | 'api' | 'console' | 'kafka' | 'adminToken') => {
      const found = readStateFile(dataDir, name)
      if (found !== undefined) return found
      const what = `No Weir runs on ${dataDir}. Run npm start in another terminal, or name its directory with --data DIR.`
      throw new WeirError('CONFIG_INVALID', what)
    }
    this.proxy = read('ingress')
    this.api = read('api')
    this.console = read('console')
    this.kafka = read('kafka')
    this.#token = read('adminToken')
    this.#dataDir = dataDir
    this.#context = context
  }

  /** Prints a line of what happens. */
  say(line: string): void {
    this.#context.print(line)
  }

  /** Has this done at the end of the example, before what was asked for earlier. Throws once it has ended. */
  atEnd(undo: () => unknown): void {
    if (this.#hasEnded) throw new WeirError('CONFIG_INVALID', 'The example has ended.')
    this.#undo.push(undo)
  }

  /** Takes away what the example has added, the last first. Rejects with the first fault, after all was tried. */
  async end(): Promise<void> {
    this.#hasEnded = true
    const faults: unknown[] = []
    for (const undo of this.#undo.toReversed()) {
      try {
        await undo()
      } catch (error) {
        faults.push(error)
      }
    }
    if (faults.length > 0) throw faults[0]
  }

  /** Asks the console, as its root: `GET /v1/blocks`. Throws as the commands of `./weir` do. */
  async ask<T>(request: string, body?: object, more: Pick<ConsoleRequest, 'alsoAnswer'> = {}): Promise<T> {
    const [method, path = ''] = request.split(' ') as [NonNullable<ConsoleRequest['method']>, string]
    const address = { url: this.console, token: this.#token }
    return (await askConsole<T>(address, { method, path, ...(body === undefined ? {} : { body }), ...more })).body
  }

  async #delete(path: string): Promise<void> {
    await this.ask(`DELETE ${path}`, undefined, { alsoAnswer: 404 })
  }

  async #put(path: string, body: object): Promise<void> {
    this.atEnd(() => this.#delete(path))
    await this.ask(`PUT ${path}`, body)
  }

  /** Puts `examples/NAME/weir.yaml` in force beside the rest of the policy; of upstreams with what only a run knows. */
  async addPolicy(example: string, more: Readonly<Record<string, object>> = {}): Promise<void> {
    const file = `examples/${example}/weir.yaml`
    const parts: Parts = parse(await readFile(inProject(file), 'utf8'))
    const { identity, rateCards = {}, limits = {}, plans = {}, upstreams = {}, routes = [] } = parts
    if (identity !== undefined) await this.#trustProxies(identity.trustedProxies)
    for (const [name, body] of Object.entries(rateCards)) await this.#put(`/v1/rateCards/${name}`, body)
    for (const [name, body] of Object.entries(limits)) await this.#put(`/v1/limits/${name}`, body)
    for (const [name, body] of Object.entries(plans)) await this.#put(`/v1/plans/${name}`, body)
    for (const [name, body] of Object.entries(upstreams))
      await this.#put(`/v1/upstreams/${name}`, { ...body, ...more[name] })
    for (const route of routes) await this.#put(`/v1/routes/${encodeURIComponent(route.match)}`, route)
    this.say(`In force for now: ${file}`)
  }

  async #trustProxies(wanted: readonly string[]): Promise<void> {
    type Identity = { readonly trustedProxies?: readonly string[] }
    const before = await this.ask<Identity & { readonly status?: unknown }>('GET /v1/identity', undefined, {
      alsoAnswer: 404,
    })
    const isThere = before.status === undefined
    const trustedProxies = [...new Set([...(before.trustedProxies ?? []), ...wanted])]
    this.atEnd(() => (isThere ? this.ask('PUT /v1/identity', before) : this.#delete('/v1/identity')))
    await this.ask('PUT /v1/identity', isThere ? { ...before, trustedProxies } : { trustedProxies })
  }

  /** Adds a subject with a name of its own in each run, so that nothing is counted of it yet; returns the name. */
  async addSubject(name: string, plan: string): Promise<string> {
    const subject = `${name}-${randomUUID().slice(0, 4)}`
    await this.#put(`/v1/subjects/${subject}`, { plan })
    return subject
  }

  /** Makes a key for a subject, and waits until it opens the api listener. */
  async addKey(subject: string): Promise<string> {
    const { key } = await this.ask<{ key: string }>(`POST /v1/subjects/${subject}/keys`, { expires: credentialsEnd() })
    await this.#untilKnown(key, { peek: true })
    return key
  }

  /** Makes a token with one scope. With `check` it opens the api listener by then. */
  async addToken(name: string, scope: 'check' | 'read'): Promise<string> {
    const path = `/v1/tokens/${name}`
    await this.#delete(path) // of a run that was killed
    this.atEnd(() => this.#delete(path))
    const body = { name, scopes: [scope], expires: credentialsEnd() }
    const { token } = await this.ask<{ token: string }>('POST /v1/tokens', body)
    if (scope === 'check') await this.#untilKnown(token, { subject: name, peek: true })
    return token
  }

  /** The api listener follows the policy within a second. Asks seldom: a hundred wrong credentials block an address. */
  async #untilKnown(token: string, check: object): Promise<void> {
    await this.until('the credential is in force', async () => {
      const answer = await fetch(`${this.api}/v1/check`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(check),
      })
      await answer.arrayBuffer()
      return answer.status !== 401
    })
  }

  /** Waits until something is so, and returns what was found. Throws after a minute. */
  async until<T>(what: string, ask: () => Promise<T | undefined | false>): Promise<T> {
    const found = await waitUntil(ask, { deadlineMs, everyMs: 200 })
    if (found === undefined)
      throw new WeirError('CONSOLE_UNAVAILABLE', `After ${deadlineMs / 1_000} s it is not so: ${what}`)
    return found
  }

  /** What is counted of a subject's unit. */
  async unitsOf(subject: string, unit: string): Promise<number> {
    const question = `GET /v1/usage?step=total&subject=${subject}&unit=${unit}`
    const { totals } = await this.ask<{ totals?: { quantity: number } }>(question)
    return totals?.quantity ?? 0
  }

  /** Waits until so much of a subject is counted. */
  async untilCounted(subject: string, wanted: { readonly count: number; readonly cost: number }): Promise<void> {
    await this.until(`${JSON.stringify(wanted)} of ${subject} is counted`, async () => {
      const { totals } = await this.ask<{ totals: typeof wanted }>(`GET /v1/usage?step=total&subject=${subject}`)
      return totals.count === wanted.count && totals.cost === wanted.cost
    })
  }

  /** Runs a command of `./weir`, and prints it with its output as a terminal would show them. */
  async run(...args: readonly string[]): Promise<void> {
    this.say(`$ ./weir ${args.join(' ')}`)
    const command = spawnBound([inProject('weir'), ...args, '--data', this.#dataDir], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: this.#context.environment,
    })
    if (command.stdout !== null) this.say((await text(command.stdout)).trimEnd())
  }

  /** Starts a program that ends with the example. Its errors are seen; `onLine` gets the lines that it prints. */
  program(
    command: readonly [string, ...string[]],
    environment: Readonly<Record<string, string>> = {},
    onLine?: (line: string) => void,
  ) {
    const child = spawnBound(command, {
      stdio: ['ignore', onLine === undefined ? 'ignore' : 'pipe', 'inherit'],
      env: { ...this.#context.environment, ...environment },
    })
    const ended = once(child, 'exit')
    this.atEnd(async () => {
      child.kill('SIGTERM')
      await ended
    })
    if (child.stdout !== null && onLine !== undefined) createInterface(child.stdout).on('line', onLine)
    return { hasEnded: () => child.exitCode !== null }
  }

  /** Has a server listen until the end of the example; returns its address. */
  async listen(server: Server): Promise<string> {
    const [port = 0] = await freePorts(1)
    this.atEnd(() => {
      server.closeAllConnections()
      server.close()
    })
    await once(server.listen(port, '127.0.0.1'), 'listening')
    return `http://127.0.0.1:${port}`
  }

  /** Makes a folder that the end removes. */
  async makeFolder(): Promise<string> {
    const dir = await mkdtemp(join(tmpdir(), 'weir-example-'))
    this.atEnd(() => rm(dir, { recursive: true, force: true }))
    return dir
  }
}
