import { describe, expect, test } from 'vitest'
import { environmentProblems } from './environment-problems.ts'
import { readConfigs } from './read-configs.ts'
import { textOf, tree } from './read-tree.ts'
import { units } from './read-units.ts'

const configs = await readConfigs()
const paths = new Set(tree.map(({ path }) => path))
const tmpfiles = textOf('infra/systemd/weir.tmpfiles.conf')

test('Every service has a unit, and every unit is of a service', () => {
  expect(units.map(({ service }) => service).toSorted()).toEqual(configs.map(({ service }) => service).toSorted())
})

describe.each(units)('$name', ({ service, valuesOf, environment }) => {
  const { variables = {} } = configs.find((one) => one.service === service) ?? {}

  test('The unit and its environment file set variables that the service reads, and all that it must have', () => {
    // How Node works, which is no variable of Weir.
    const [ours, others] = [[...environment], ['NODE_ENV']]
    expect(environmentProblems(new Map(ours), variables, others)).toEqual([])
  })

  test('The unit starts the program of its service with the Node that the launcher installs', () => {
    const [command = ''] = valuesOf('ExecStart')
    const [node, main = ''] = command.split(' ')
    expect([node, valuesOf('WorkingDirectory')]).toEqual(['/opt/weir/node_modules/node/bin/node', ['/opt/weir']])
    expect([main, paths.has(main)]).toEqual([`services/${service}/src/main.ts`, true])
    expect(textOf('weir')).toMatch(/bin=\$root\/node_modules\/node\/bin\n[\s\S]*"\$bin\/node"/)
  })

  test('The unit reads every credential that it loads, from a folder that is made for it', () => {
    const credentials = valuesOf('LoadCredential').map((one) => one.split(':'))
    const files = [...environment].filter(([name]) => name.endsWith('_FILE'))
    const loaded = files.filter(([, value]) => value.startsWith('/run/credentials/')).map(([, value]) => value)
    expect(loaded.toSorted()).toEqual(credentials.map(([id]) => `/run/credentials/unit/${id}`).toSorted())
    for (const [, file = ''] of credentials) {
      expect(tmpfiles).toContain(`d ${file.slice(0, file.lastIndexOf('/'))} 0700 root root -`)
    }
  })

  test('A wrong configuration is not started again, and all else is', () => {
    expect([valuesOf('Restart'), valuesOf('RestartPreventExitStatus')]).toEqual([['always'], ['2']])
  })
})

test('Instances of one machine have ports and files of their own, and share the journal', () => {
  const text = textOf('infra/systemd/weir-ingress@.service')
  expect(text).toMatch(/^Environment=WEIR_OPS_PORT=911%i$/m)
  expect(text).toMatch(/^Environment=WEIR_POLICY_SNAPSHOT=.*%i/m)
  expect(text).toMatch(/^Environment=WEIR_JOURNAL_DIR=[^%]*%S[^%]*$/m)
  const ports = units.map(({ environment, valuesOf }) => environment.get('WEIR_OPS_PORT') ?? valuesOf('none')[0])
  expect(new Set(ports).size).toBe(units.length)
})

test('The page of systemd says what the services’ units are called and where they answer', () => {
  const page = textOf('docs/deploy/systemd.md')
  for (const { service, environment, name } of units) {
    const shown = name.includes('@') ? `\`weir-${service}@N\`` : `\`weir-${service}\``
    expect(page).toContain(`| ${shown} |`)
    const port = environment.get('WEIR_OPS_PORT')
    if (port !== undefined) expect(page).toContain(`\`${port.slice(0, -1)}N\``)
  }
})

test('A variable that nothing reads, one that is missing, and a value that is not accepted are found', () => {
  const { variables = {} } = configs.find(({ service }) => service === 'metering') ?? {}
  const wrong = new Map([
    ['WEIR_KAFKA_BROKER', 'kafka:9092'],
    ['WEIR_CLICKHOUSE_URL_FILE', '/file'],
    ['WEIR_OPS_PORT', '912x'],
  ])
  expect(environmentProblems(wrong, variables)).toEqual([
    'nothing reads WEIR_KAFKA_BROKER',
    'WEIR_KAFKA_BROKERS is not set',
    'WEIR_OPS_PORT must be a whole number from 1 to 65535',
  ])
})
