import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { expect, onTestFinished, test } from 'vitest'
import { listenForTest } from '../../support/listen.ts'
import { createAuthority } from '../../support/servers/certificates.ts'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'

test('A broker whose certificate has expired is named', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'weir-test-expired-'))
  const authority = await createAuthority(dir)
  const { certFile, keyFile } = await authority.issue('kafka', -1)
  const server = createServer({ cert: await readFile(certFile), key: await readFile(keyFile) })
  onTestFinished(() => rm(dir, { recursive: true }))
  const where = `127.0.0.1:${await listenForTest(server)}`
  const tls = { ca: authority.caFile, cert: '', key: '', serverName: '' }
  await expect(ensureTopics({ ...kafkaOptions(where), security: { tls, sasl: undefined } }, [])).rejects.toThrow(
    `the certificate of ${where} has expired or is not valid yet (certificate has expired)`,
  )
})
