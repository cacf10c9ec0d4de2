import { inProject } from '@weir/cli/project.ts'
import { createClient } from '@weir/client'
import type { RunningWeir } from '../running-weir.ts'
import { fetchPythonClient } from './python-client.ts'

/** A program in Python that reads alerts from Kafka, each once. */
export async function start(weir: RunningWeir): Promise<void> {
  await weir.addPolicy('alerts-python')
  const subject = await weir.addSubject('reader', 'example-alerts')
  const client = createClient({ url: weir.api, key: await weir.addKey(subject), timeoutMs: 10_000 })
  weir.atEnd(() => client.close())
  const file = 'docs/alert-consumers/consume.py'
  const variables = { BROKERS: weir.kafka, PYTHONPATH: await fetchPythonClient() }
  let own = 0
  weir.program(['python3', inProject(file)], variables, (line) => {
    const isOwn = line.includes(`"subject": "${subject}"`)
    // What it has missed since its last run comes first, and is not of this example.
    if (isOwn || own >= 2) weir.say(`python: ${line}`)
    if (isOwn) own += 1
  })
  weir.say(`${file} reads weir.alerts.v1 at ${weir.kafka}.`)

  for (let n = 0; n < 10; n += 1) await client.check()
  weir.say(`${subject} has used its quota of 10.`)
  await weir.until('Python has both alerts', async () => own === 2)
  weir.say('Try it: ./weir example prepaid in a third terminal raises alerts, and they are printed here.')
}
