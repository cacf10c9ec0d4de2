import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { fromMaven } from './maven.ts'
import { type Program, platform } from './program.ts'

const here = platform()

/** Of one jar, which has a program for each system. */
const redisFiles: Readonly<Record<string, string>> = {
  'linux-x64': 'linux-amd64',
  'linux-x64-musl': 'linux-amd64',
  'linux-arm64': 'linux-arm64',
  'linux-arm64-musl': 'linux-arm64',
  'darwin-x64': 'darwin-amd64',
  'darwin-arm64': 'darwin-arm64',
}

const redisFile = `redis-server-7.0.15-${redisFiles[here]}`

/** Redis, or Valkey. The private copy is the static one that Signal publishes. */
export const redisProgram: Program = {
  label: 'Redis 6.2 or newer',
  folder: 'redis-7.0.15',
  path: 'redis-server',
  onPath: { names: ['redis-server', 'valkey-server'], args: ['--version'], oldest: [6, 2] },
  ...(here in redisFiles && {
    source: fromMaven('Redis 7.0', 11_393_184, [
      {
        name: 'org.signal:embedded-redis:0.9.1',
        sha256: 'c01fe66ecf3b9d3161958e9a0e721aaf74ce98a909faca103fc8d09ff7617827',
        unpacking: { pathOf: (name) => (name === redisFile ? 'redis-server' : undefined), isProgram: () => true },
      },
    ]),
  }),
  packages: { 'apt-get': 'redis-server', dnf: 'valkey', apk: 'redis', brew: 'redis' },
}

/** The archive of each system, with its size. */
const javaFiles: Readonly<Record<string, readonly [name: string, sha256: string, bytes: number]>> = {
  'linux-x64': ['linux-x64', 'bb8f709f9cb73352f8d1260a3b3c506c0f41146754bc630762c126d795499d0b', 61_626_644],
  'linux-arm64': ['linux-aarch64', '5e1c9328f4e261838de778c9e586ee608cca45ff7f0538108642219214628ba5', 60_670_850],
  'darwin-x64': ['macosx-x64', '8afc8bbff9008434e53b31cb681333ff643b999f84ca537db573d0fae8883cdc', 51_731_952],
  'darwin-arm64': ['macosx-aarch64', '20d12be4081896b337cd873d98ebd3d554be666086a45e31dd84a12ef51c3688', 57_860_699],
}

const javaFile = javaFiles[here]

/** A Java for Kafka. The private copy is the Temurin 21 that Sonar's scanner carries for itself. */
export const javaProgram: Program = {
  label: 'Java 17 or newer',
  folder: 'java-21.0.9',
  path: 'bin/java',
  onPath: { names: ['java'], home: 'JAVA_HOME', args: ['-version'], oldest: [17, 0] },
  ...(javaFile && {
    source: fromMaven('Java 21', javaFile[2], [
      {
        name: `org.sonarsource.scanner.cli:sonar-scanner-cli:zip:${javaFile[0]}:8.1.0.6389`,
        sha256: javaFile[1],
        unpacking: { pathOf: (name) => /^[^/]+\/jre\/(.+)$/.exec(name)?.[1] },
      },
    ]),
  }),
  packages: {
    'apt-get': 'default-jre-headless',
    dnf: 'java-21-openjdk-headless',
    apk: 'openjdk21-jre-headless',
    brew: 'openjdk',
  },
}

/** A list of jars: a hash, two blanks and `group:artifact:version` a line. */
export function readJars(file: string) {
  const lines = readFileSync(file, 'utf8').trim().split('\n')
  return lines.map((line) => ({ sha256: line.slice(0, 64), name: line.slice(66) }))
}

const jars = readJars(resolve(import.meta.dirname, '../../kafka/jars.sha256'))
const kafkaVersion = jars.map(({ name }) => /:kafka_[\d.]+:(.+)$/.exec(name)?.[1]).find(Boolean)
/** A new jar makes a new folder. */
const jarsVersion = createHash('sha256').update(JSON.stringify(jars)).digest('hex').slice(0, 8)

/** Kafka's jars, in their folder. */
export const kafkaProgram: Program = {
  label: `Kafka ${kafkaVersion}`,
  folder: `kafka-${kafkaVersion}-${jarsVersion}`,
  path: '.',
  source: fromMaven(`Kafka ${kafkaVersion}`, 44_286_877, jars),
  packages: {},
}
