import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import * as http from 'node:http'
import * as https from 'node:https'
import { join } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { getCACertificates } from 'node:tls'
import type { FetchOptions, Source } from './program.ts'
import { tool } from './tool.ts'
import { type Unpacking, unpack } from './unpack.ts'

/** A file of Maven's registry. */
export interface Artifact {
  /** `group:artifact:version`, or `group:artifact:extension:classifier:version`. */
  readonly name: string
  readonly sha256: string
  /** Of an archive: what is taken out of it. Undefined for a file that stays as it is. */
  readonly unpacking?: Unpacking
}

/** A server that says nothing for as long is given up. */
const silenceMs = 60_000
/** A try each after the first: a connection that broke is worth another, an answer that is wrong is not. */
const triesMax = 3
/** Connections to one registry, as npm and Maven open them. */
const connectionsMax = 8

const advice =
  'HTTPS_PROXY names a proxy, NODE_EXTRA_CA_CERTS the CA of your company, WEIR_MAVEN_URL a mirror of Maven Central'

/** An answer that another try would not change. */
class WrongAnswer extends Error {}

/** An address as it is shown: a mirror's may carry a password. */
const shown = (url: URL) => `${url.origin}${url.pathname}`

type Environment = FetchOptions['environment']

/** Node's agents ask no proxy unless told. Certificates are Node's, those of NODE_EXTRA_CA_CERTS, and the system's. */
const agentOptions = (environment: Environment) => ({
  keepAlive: true,
  maxSockets: connectionsMax,
  proxyEnv: environment as NodeJS.ProcessEnv,
  ca: [...getCACertificates('default'), ...getCACertificates('system')],
})

function openRegistry(environment: Environment) {
  const end = new AbortController()
  const agents = {
    'http:': new http.Agent(agentOptions(environment)),
    'https:': new https.Agent(agentOptions(environment)),
  }
  const get = (url: URL): Promise<http.IncomingMessage> =>
    new Promise((resolve, reject) => {
      const isPlain = url.protocol === 'http:'
      const agent = agents[isPlain ? 'http:' : 'https:']
      const request = (isPlain ? http : https).get(url, { agent, timeout: silenceMs, signal: end.signal }, resolve)
      request.once('timeout', () => request.destroy(new Error(`nothing was said for ${silenceMs / 1_000} s`)))
      request.once('error', reject)
    })
  const close = () => {
    end.abort()
    for (const agent of Object.values(agents)) agent.destroy()
  }
  return { get, close, signal: end.signal }
}

interface Download {
  readonly artifact: Artifact
  readonly url: URL
  readonly file: string
  readonly registry: ReturnType<typeof openRegistry>
  readonly received: (bytes: number) => void
}

async function downloadOnce({ artifact, url, file, registry, received }: Download): Promise<void> {
  const answer = await registry.get(url)
  if (answer.statusCode !== 200) {
    answer.resume()
    const problem = `${shown(url)} answered ${answer.statusCode}`
    throw (answer.statusCode ?? 0) >= 500 ? new Error(problem) : new WrongAnswer(problem)
  }
  const hash = createHash('sha256')
  const counted = new Transform({
    transform(chunk: Buffer, _, next) {
      hash.update(chunk)
      received(chunk.length)
      next(null, chunk)
    },
  })
  await pipeline(answer, counted, createWriteStream(file))
  const sum = hash.digest('hex')
  if (sum === artifact.sha256) return
  throw new WrongAnswer(
    `${shown(url)} is not the file that Weir pins: its sha256 is ${sum} and not ${artifact.sha256}. It is not used`,
  )
}

async function download(options: Download): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await downloadOnce(options)
    } catch (cause) {
      if (cause instanceof WrongAnswer || options.registry.signal.aborted) throw cause
      if (tries < triesMax) continue
      const { message, code } = cause as NodeJS.ErrnoException
      throw new Error(`${shown(options.url)}: ${message || code}. ${advice}`, { cause })
    }
  }
}

/** Artifacts of Maven's registry, or of the mirror that WEIR_MAVEN_URL names; the hashes make any mirror safe. */
export const fromMaven = (what: string, bytes: number, artifacts: readonly Artifact[]): Source => ({
  bytes,
  async fill(folder, { environment, tell }) {
    const [parse, urlOf] = [tool('mvn-artifact-name-parser'), tool('mvn-artifact-url')]
    const mirror = environment.WEIR_MAVEN_URL?.replace(/\/?$/, '/')
    const registry = openRegistry(environment)
    let done = 0
    const received = (more: number) => {
      done += more
      tell(what, done, bytes)
    }
    const downloads = artifacts.map(async (artifact) => {
      const url = new URL(await urlOf.default(parse.default(artifact.name), mirror))
      const file = join(folder, url.pathname.slice(url.pathname.lastIndexOf('/') + 1))
      await download({ artifact, url, file, registry, received })
      if (artifact.unpacking === undefined) return
      await unpack(file, folder, artifact.unpacking)
      await rm(file)
    })
    try {
      await Promise.all(downloads)
    } finally {
      registry.close()
      await Promise.allSettled(downloads) // or the folder could not be removed
    }
  },
})
