import { createTopics } from '@weir/cli/commands/topics.ts'
import { kafkaFrom } from '@weir/cli/find-servers.ts'
import { topics } from '@weir/contracts/topics.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, expect, test } from 'vitest'
import { documentedRights } from '../../support/documented-rights.ts'
import { forFile, forTest } from '../../support/opened.ts'
import { openCommands } from '../../support/rights/commands.ts'
import { Rounds } from '../../support/rights/rounds.ts'
import { type ServiceName, serviceNames, startSecuredWeir } from '../../support/rights/secured-weir.ts'

/** What the closing line prints: who, without which right, and where or how it is named. */
const table: string[] = []

const silent = () => undefined
const weir = await forFile(
  startSecuredWeir((environment) => createTopics(kafkaFrom(environment, 'weir-topics'), silent)),
)
const rounds = await forFile(new Rounds(weir))
await rounds.finish(await rounds.begin())
afterAll(() => void process.stdout.write(`\n${table.join('\n')}\n`))

/**
 * Until the service's log and /readyz name the right; and the console's answers, where it was asked for what needs the
 * right.
 */
async function untilNamed(service: ServiceName, sentence: string, from: number, askConsole: () => Promise<string>) {
  const isAnswered = service === 'console' && sentence.includes('Write')
  const said = async () => ({
    log: weir.services[service].said().slice(from),
    readyz: (await weir.services[service].ready()).text,
    ...(isAnswered ? { answer: await askConsole() } : {}),
  })
  const isNamed = async () => Object.values(await said()).every((text) => text.includes(sentence))
  const isAll = await waitUntil(isNamed, { deadlineMs: 20_000 })
  if (isAll !== true)
    throw new Error(`not everything says "${sentence}": ${JSON.stringify(await said(), undefined, 1)}`)
  return Object.keys(await said()).join(', ')
}

const cases = serviceNames.flatMap((service) =>
  (documentedRights().get(`weir-${service}`) ?? []).map((right) => {
    const { operation, resource, name } = right
    return { service, right, lacks: `${operation} on ${resource} ${name}` }
  }),
)

test.each(cases)('Without $lacks, $service names the right and waits; with it again nothing is lost', async (one) => {
  const { service, right, lacks } = one
  const user = `weir-${service}`
  const from = weir.services[service].said().length
  // Only a stream makes the console read decisions.
  const isStreamed = service === 'console' && right.name === topics.decisions
  const stopListening = isStreamed ? await weir.listen() : undefined
  await weir.kafka.revoke(user, [right])
  const round = await rounds.begin()
  expect(round.status).toBe(204)
  const named = untilNamed(service, `lacks ${lacks}`, from, () => rounds.askConsole(round))
  const where = await named.finally(() => weir.kafka.grant(user, [right]))
  stopListening?.()
  table.push(`| ${service} | ${lacks} | ${where} |`)
  await rounds.finish(round)
})

test('Every request of all rounds is counted once', async () => {
  const { rounds: count, ...sums } = await rounds.sums()
  expect(sums).toEqual({ decisions: count, ids: count, subjects: count })
})

test('Each command does its work with its rights alone, and names each one that is missing', async () => {
  const { kafka, rights, services } = weir
  const commands = await forTest(openCommands(weir))
  expect([...rights.keys()].sort()).toEqual([...serviceNames.map((name) => `weir-${name}`), ...commands.users].sort())
  for (const user of commands.users) {
    // A journal of a dead process, and a group without members.
    if (user === 'weir-journal-drain') await services.ingress.kill('SIGKILL')
    if (user === 'weir-metering-seek') await services.metering.kill('SIGTERM')
    for (const right of rights.get(user) ?? []) {
      const { operation, resource, name } = right
      // Read and Write include Describe, and it is not enough.
      const less = ['Read', 'Write'].includes(operation) ? [{ ...right, operation: 'Describe' }] : []
      await kafka.grant(user, less)
      await kafka.revoke(user, [right])
      const { text } = await commands.run(user).finally(() => kafka.grant(user, [right]))
      await kafka.revoke(user, less)
      // a topic that is made is named whole
      const sentence = new RegExp(`lacks ${operation} on ${resource} ${name}\\S*`)
      expect(text, `${user} without ${operation} on ${resource} ${name}`).toMatch(sentence)
      table.push(`| ${user} | ${operation} on ${resource} ${name} | ${sentence.exec(text)?.[0]} |`)
    }
    expect(await commands.run(user)).toMatchObject({ isDone: true })
  }
}, 240_000)
