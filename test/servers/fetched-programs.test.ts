import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { inProject } from '@weir/cli/project.ts'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { folderForFile } from '../support/opened.ts'
import { createAuthority } from '../support/servers/certificates.ts'

const body = randomBytes(300_000)
const path = '/maven2/org/example/thing/1.0/thing-1.0.jar'
const closing: (() => void)[] = []

const dir = await folderForFile('fetched')
const authority = await createAuthority(dir)
const ca = authority.caFile
const { certFile, keyFile } = await authority.issue('mirror')
const serve = (request: IncomingMessage, answer: import('node:http').ServerResponse) => {
  answer.statusCode = request.url === path ? 200 : 404
  answer.end(request.url === path ? body : '')
}
const plain = createServer(serve).listen(0, '127.0.0.1')
const tls = createTlsServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }, serve).listen(0, '127.0.0.1')
const forward = createServer().listen(0, '127.0.0.1')
const asked: string[] = []
forward.on('connect', (request: IncomingMessage, client: Socket) => {
  asked.push(request.url ?? '')
  const { port } = tls.address() as AddressInfo
  const target = connect(port, '127.0.0.1', () => client.write('HTTP/1.1 200 OK\r\n\r\n'))
  target.on('error', () => client.destroy())
  client.on('error', () => target.destroy())
  client.pipe(target).pipe(client)
})
await Promise.all([plain, tls, forward].map((server) => once(server, 'listening')))
closing.push(...[plain, tls, forward].map((server) => () => server.closeAllConnections()))
closing.push(...[plain, tls, forward].map((server) => () => server.close()))
const portOf = (server: { address(): unknown }) => (server.address() as AddressInfo).port
const mirrors = { plain: `http://127.0.0.1:${portOf(plain)}/maven2`, tls: `https://localhost:${portOf(tls)}/maven2/` }
const proxy = { url: `http://127.0.0.1:${portOf(forward)}`, asked }

afterAll(async () => {
  for (const close of closing) close()
})

const program = `
const { fromMaven } = await import(process.argv[1])
const source = fromMaven('Thing', 300_000, [{ name: 'org.example:' + process.argv[4] + ':1.0', sha256: process.argv[3] }])
let last = 0
await source.fill(process.argv[2], { environment: process.env, tell: (_, bytes) => (last = bytes) })
  .then(() => console.log('fetched ' + last), (error) => console.log(error.message))`

/** Fetches an artifact in a process of its own, as its environment says. */
async function fetchThing(environment: Readonly<Record<string, string>>, sha256 = sumOf(body), name = 'thing') {
  const folder = await mkdtemp(join(dir, 'fetch-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const module = inProject('infra/local/programs/src/maven.ts')
  const args = [
    '--disable-warning=ExperimentalWarning',
    '--input-type=module',
    '-e',
    program,
    module,
    folder,
    sha256,
    name,
  ]
  const { PATH = '' } = process.env
  const child = spawn(process.execPath, args, { env: { PATH, ...environment }, stdio: ['ignore', 'pipe', 'inherit'] })
  const said: Buffer[] = []
  child.stdout.on('data', (part: Buffer) => said.push(part))
  await once(child, 'close')
  return { said: Buffer.concat(said).toString().trim(), files: existsSync(folder) ? await readdir(folder) : [] }
}

const sumOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

test('a mirror serves what Maven Central would, and says how far it is', async () => {
  await expect(fetchThing({ WEIR_MAVEN_URL: mirrors.plain })).resolves.toEqual({
    said: 'fetched 300000',
    files: ['thing-1.0.jar'],
  })
})

test('one byte that is not the pinned one stops the fetch, which names the file and both hashes', async () => {
  const wrong = sumOf(Buffer.from('other'))
  const { said } = await fetchThing({ WEIR_MAVEN_URL: mirrors.plain }, wrong)
  const { plain } = mirrors
  expect(said).toBe(
    `${plain}/org/example/thing/1.0/thing-1.0.jar is not the file that Weir pins: its sha256 is ${sumOf(body)} and not ${wrong}. It is not used`,
  )
})

test('what a mirror does not have is named with its address, but not with its password', async () => {
  const { said } = await fetchThing(
    { WEIR_MAVEN_URL: mirrors.plain.replace('//', '//user:secret@') },
    undefined,
    'nothing',
  )
  expect(said).toBe(`${mirrors.plain}/org/example/nothing/1.0/nothing-1.0.jar answered 404`)
})

test("a mirror behind a company's CA is reached with NODE_EXTRA_CA_CERTS, and without it the error says so", async () => {
  const trusted = await fetchThing({ WEIR_MAVEN_URL: mirrors.tls, NODE_EXTRA_CA_CERTS: ca })
  expect(trusted.said).toBe('fetched 300000')
  const { said } = await fetchThing({ WEIR_MAVEN_URL: mirrors.tls })
  expect(said).toContain(`${mirrors.tls}org/example/thing/1.0/thing-1.0.jar: `)
  expect(said).toContain(
    'HTTPS_PROXY names a proxy, NODE_EXTRA_CA_CERTS the CA of your company, WEIR_MAVEN_URL a mirror',
  )
})

test('HTTPS_PROXY is asked for every connection to the registry, unless NO_PROXY names its host', async () => {
  const through = { WEIR_MAVEN_URL: mirrors.tls, NODE_EXTRA_CA_CERTS: ca, HTTPS_PROXY: proxy.url }
  await expect(fetchThing(through)).resolves.toMatchObject({ said: 'fetched 300000' })
  expect(proxy.asked).toEqual([new URL(mirrors.tls).host])
  await expect(fetchThing({ ...through, NO_PROXY: 'localhost' })).resolves.toMatchObject({ said: 'fetched 300000' })
  expect(proxy.asked).toHaveLength(1)
})

test('a registry that cannot be reached is tried again, and then named', async () => {
  const { said } = await fetchThing({ WEIR_MAVEN_URL: 'http://127.0.0.1:9' })
  expect(said).toContain('http://127.0.0.1:9/org/example/thing/1.0/thing-1.0.jar: connect ECONNREFUSED')
})

/** A checkout without private copies. */
async function checkOut(): Promise<string> {
  const root = await mkdtemp(join(dir, 'checkout-'))
  for (const path of ['infra/local/programs/src', 'infra/local/kafka/jars.sha256']) {
    await cp(inProject(path), join(root, path), { recursive: true })
  }
  await mkdir(join(root, '.weir'))
  return root
}

test('a pnpm that says nothing is given up, and the error says so', async () => {
  const root = await checkOut()
  const bin = join(root, '.weir/tools/node_modules/pnpm/bin')
  await mkdir(bin, { recursive: true })
  await writeFile(join(bin, 'pnpm.cjs'), 'console.log("{}"); setInterval(() => {}, 1_000_000)')
  const { installPackages } = await import(join(root, 'infra/local/programs/src/packages.ts'))
  const installed = installPackages('run', { environment: process.env, tell: () => undefined }, 500)
  await expect(installed).rejects.toThrow('pnpm said nothing for 0.5 s')
})

test('a start that finds and reaches nothing names every program, with its address and what installs it', async () => {
  const root = await checkOut()
  await symlink(inProject('.weir/tools'), join(root, '.weir/tools'))
  const main = join(root, 'infra/local/programs/src/main.ts')
  const env = { PATH: '', WEIR_MAVEN_URL: 'http://127.0.0.1:9' }
  const child = spawn(process.execPath, [main, 'run', 'up'], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  const said: Buffer[] = []
  child.stderr.on('data', (part: Buffer) => said.push(part))
  const [code] = await once(child, 'close')
  expect(code).toBe(1)
  for (const label of ['Redis 6.2 or newer', 'Java 17 or newer', 'Kafka 4.1.1']) {
    expect(Buffer.concat(said).toString()).toContain(
      `weir: ${label} is missing and could not be fetched: http://127.0.0.1:9/`,
    )
  }
})
