import { execFile } from 'node:child_process'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { verifySha256 } from '@weir/runtime/verify-sha256.ts'
import { fetchOnce } from '../fetch-once.ts'

const pomFile = join(import.meta.dirname, 'pom.xml')
/** Of the pom's jar; another version is another folder. */
const version = '1.0.49'
/** 30 MB; a slow mirror gets this long. */
const fetchDeadlineMs = 5 * 60_000

const run = promisify(execFile)

/** Of some thousand files of the jar, these six hundred. */
const unpackProtos = `
import sys, zipfile
jar = zipfile.ZipFile(sys.argv[1])
jar.extractall(sys.argv[2], [name for name in jar.namelist() if name.endswith('.proto')])
`

/** The folder that Envoy's own .proto files lie in, with what they import. Maven fetches them once per checkout. */
export function envoyProtos(): Promise<string> {
  return fetchOnce(`envoy-protos-${version}`, async (folder) => {
    try {
      const goal = 'dependency:copy-dependencies'
      const options = { timeout: fetchDeadlineMs }
      await run('mvn', ['-q', '-B', '-C', '-f', pomFile, goal, `-DoutputDirectory=${folder}`], options)
      await verifySha256(folder, join(import.meta.dirname, 'jars.sha256'))
      const [jar = ''] = await readdir(folder)
      await run('python3', ['-c', unpackProtos, join(folder, jar), folder], options)
      await rm(join(folder, jar))
    } catch (error) {
      const wanted = 'make Maven and Python work (apt-get install -y maven default-jre-headless python3)'
      throw new Error(`no .proto files of Envoy for the tests: ${wanted}`, { cause: error })
    }
  })
}
