import { execFileSync } from 'node:child_process'
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { environmentProblems } from '../repo/environment-problems.ts'
import { readConfigs } from '../repo/read-configs.ts'
import { folderForFile } from '../support/opened.ts'
import { chartFolder, programsOfChart } from './chart-files.ts'
import { goTools, type Manifest, manifestsOf, render, runTool } from './chart-tools.ts'
import { immutableDifferences } from './immutable-fields.ts'

const chart = resolve(chartFolder)
const valueFiles = (await readdir(join(chart, 'ci'))).toSorted()
const values = (name: string) => join(chart, 'ci', name)
const versions = ['1.27', '1.30']
/** A Helm built from source believes in a Kubernetes of years ago. */
const newest = ['--kube-version', '1.30']
const configs = await readConfigs()
const programs = await programsOfChart()

/** What each file of values gives, rendered once. */
const rendered = new Map<string, readonly Manifest[]>()

execFileSync('npm', ['run', 'chart'])
const scratch = await folderForFile('chart')
for (const version of versions) {
  await mkdir(join(scratch, version))
  for (const name of valueFiles) {
    const text = await render(chart, values(name), '--kube-version', version)
    await writeFile(join(scratch, version, name), text)
    rendered.set(name, manifestsOf(text))
  }
}

/** The operator's own definitions of its kinds, in its Go module. */
function operatorDefinitions(): string {
  const module = resolve(goTools.helm.module, '../prometheus-operator')
  const name = 'github.com/prometheus-operator/prometheus-operator'
  const line = execFileSync('go', ['mod', 'download', '-json', name], { cwd: module, encoding: 'utf8' })
  return join(JSON.parse(line).Dir, 'example/prometheus-operator-crd')
}

const podSpecs = (name: string) =>
  (rendered.get(name) ?? []).flatMap(({ kind, metadata, spec }) =>
    spec?.template === undefined ? [] : [{ owner: `${kind} ${metadata.name}`, pod: spec.template.spec }],
  )

describe.each(valueFiles)('%s', (name) => {
  test('helm lint --strict finds nothing', async () => {
    expect(await runTool('helm', 'lint', '--strict', chart, '--values', values(name), ...newest)).toMatchObject({
      code: 0,
    })
  })

  test('Each program is given variables that it reads, all that it must have, and values that it accepts', () => {
    const problems = podSpecs(name).flatMap(({ pod: { containers } }) =>
      containers.flatMap(({ name: program, env }) => {
        const given = new Map(env.map(({ name: variable, value }) => [variable, value]))
        const { variables } = configs.find(({ service }) => service === program) ?? {}
        // A policy may name any variable for a secret of its endpoints.
        const own = program === 'alerting' ? ['OPS_SECRET_FILE'] : []
        // Files are there once they are mounted.
        const isOfFile = (problem: string) => problem.includes('/etc/weir/files/')
        if (variables !== undefined) return environmentProblems(given, variables, own).filter((one) => !isOfFile(one))
        const { reads = [], required = [] } = programs[program] ?? {}
        const known = reads.flatMap((one) => [one, `${one}_FILE`])
        return [
          ...[...given.keys()].filter((one) => !known.includes(one)),
          ...required.filter((one) => !given.has(one) && !given.has(`${one}_FILE`)),
        ]
      }),
    )
    expect(podSpecs(name).length).toBeGreaterThanOrEqual(4)
    expect(problems).toEqual([])
  })

  test('Every pod runs restricted, and mounts what its variables name', () => {
    for (const { owner, pod } of podSpecs(name)) {
      const { automountServiceAccountToken, securityContext, containers, volumes } = pod
      expect([owner, automountServiceAccountToken, securityContext]).toMatchObject([
        owner,
        false,
        { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      ])
      for (const { securityContext: own, volumeMounts, env } of containers) {
        expect(own).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        })
        const mounted = volumeMounts.map(({ mountPath }) => `${mountPath}/`)
        const paths = env.filter(
          ({ name: one, value }) => /_(?:FILE|DIR|SNAPSHOT|CA|CERT|KEY)$/.test(one) && value !== '',
        )
        const isMounted = ({ value }: { value: string }) => mounted.some((path) => value.startsWith(path))
        const isPolicy = ({ value }: { value: string }) => value.startsWith('/etc/weir/policy/')
        expect(paths.filter((one) => !isMounted(one) && !isPolicy(one))).toEqual([])
        const names = volumes.map(({ name: one }) => one)
        const claimed = owner.startsWith('StatefulSet') ? ['journal'] : []
        expect(volumeMounts.map(({ name: one }) => one).toSorted()).toEqual([...names, ...claimed].toSorted())
      }
    }
  })
})

test('Alerts lead to the runbook where the values say that it is', () => {
  const rule = rendered.get('everything.yaml')?.find(({ kind }) => kind === 'PrometheusRule')
  const urls = JSON.stringify(rule).match(/"runbook_url":"[^"#]*/g) ?? []
  expect(urls.length).toBeGreaterThan(50)
  expect(new Set(urls)).toEqual(new Set(['"runbook_url":"https://docs.example.com/weir/runbook.html']))
})

test.each(versions)('Kubernetes %s accepts every object of every file of values', async (version) => {
  const args = ['--version', version, '--local-crds', operatorDefinitions()]
  const { code, text } = await runTool('kubectlValidate', join(scratch, version), ...args)
  expect(text).not.toContain('ERROR')
  expect([code, stripVTControlCharacters(text).match(/OK$/gm)?.length]).toEqual([0, valueFiles.length])

  const wrong = join(scratch, 'wrong.yaml')
  await writeFile(
    wrong,
    (await readFile(join(scratch, version, 'minimal.yaml'), 'utf8')).replace('maxSurge', 'maxSurges'),
  )
  expect(await runTool('kubectlValidate', wrong, ...args)).toMatchObject({
    code: 1,
    text: expect.stringContaining('maxSurges'),
  })
})

test.each([
  ['image.registry=', 'registry'],
  ['kafka.brokers=kafka', 'brokers'],
  ['ingres.replicas=3', 'ingres'],
  ['ingress.replicas=0', 'replicas'],
  ['ingress.replicas=two', 'replicas'],
  ['ingress.journal.sice=1Gi', 'sice'],
  ['ingress.env.WEIR_REDIS_URI=redis://redis', 'WEIR_REDIS_URI'],
  ['ingress.env.WEIR_REDIS_URL=redis://redis', 'WEIR_REDIS_URL'],
  ['ingress.env.WEIR_API_PORT=1', 'WEIR_API_PORT'],
  ['metering.env.WEIR_JOURNAL_FSYNC_MS=1', 'WEIR_JOURNAL_FSYNC_MS'],
  ['metering.replicas=7', 'kafka.partitions'],
  ['secrets.WEIR_REDIS_URL=redis://redis', 'WEIR_REDIS_URL'],
  ['console.ingress.enabled=true', 'console.ingress.host'],
  ['apply.enabled=true', 'policy.text'],
  ['image.pullPolicy=Sometimes', 'pullPolicy'],
])('--set %s is refused, by name', async (setting, named) => {
  const args = ['template', 'shop', chart, '--values', values('minimal.yaml'), '--set', setting, ...newest]
  expect(await runTool('helm', ...args)).toMatchObject({ code: 1, text: expect.stringContaining(named) })
})

test('The chart accepts the commands of its page with the values of its page', async () => {
  const page = await readFile(resolve('docs/deploy/kubernetes.md'), 'utf8')
  const [, own = ''] = /```yaml\n(.*?)```/s.exec(page) ?? []
  await writeFile(join(scratch, 'my-values.yaml'), own.replace(/^ {3}/gm, ''))
  await cp('weir.yaml', join(scratch, 'my-policy.yaml'))
  const commands = page.match(/(?<=^ *helm (?:install|upgrade) )weir .*/gm) ?? []
  expect(commands).toHaveLength(2)
  for (const command of commands) {
    const args = command.replace('infra/helm/weir', chart).replace(/\bmy-/g, `${scratch}/my-`).split(' ')
    expect(await runTool('helm', 'template', ...args, ...newest)).toMatchObject({ code: 0 })
  }
})

test('Without the address of Redis, the program that lacks it is named', async () => {
  const given = ['image.registry=r', 'kafka.brokers=kafka:9092', 'secrets.WEIR_CLICKHOUSE_URL.name=weir']
  const args = [...given, 'secrets.WEIR_CLICKHOUSE_URL.key=url'].flatMap((one) => ['--set', one])
  expect(await runTool('helm', 'template', 'shop', chart, ...args, ...newest)).toMatchObject({
    code: 1,
    text: expect.stringContaining('WEIR_REDIS_URL of ingress is required'),
  })
})

test('A chart of a checkout in which `npm run chart` did not run is refused, and the message names the command', async () => {
  const bare = join(scratch, 'not-made')
  await cp(chart, bare, { recursive: true, filter: (path) => !/\/(?:files|values\.schema\.json)$/.test(path) })
  await expect(render(bare, values('minimal.yaml'), ...newest)).rejects.toThrow('npm run chart')
})

test('Kubernetes older than 1.27 is refused', async () => {
  await expect(render(chart, values('minimal.yaml'), '--kube-version', '1.26.0')).rejects.toThrow('kubeVersion')
})

/** The chart as its next release, with a change of its templates. */
async function nextChart(name: string, change?: (path: string) => Promise<void>): Promise<string> {
  const next = join(scratch, name)
  await cp(chart, next, { recursive: true })
  const file = join(next, 'Chart.yaml')
  await writeFile(file, (await readFile(file, 'utf8')).replace(/^((?:app)?[vV]ersion): .*$/gm, '$1: 7.0.0'))
  await change?.(next)
  return next
}

test.each(valueFiles)('The next version of the chart differs from this one in no immutable field: %s', async (name) => {
  const after = manifestsOf(await render(await nextChart(`next-${name}`), values(name), ...newest))
  const before = rendered.get(name) ?? []
  expect(JSON.stringify(after)).toContain('weir-7.0.0')
  expect(after.map(({ kind, metadata }) => kind + metadata.name)).toEqual(
    before.map(({ kind, metadata }) => kind + metadata.name),
  )
  expect(immutableDifferences(before, after)).toEqual([])
})

test('A version in the labels of claims or selectors is found as a change of an immutable field', async () => {
  const next = await nextChart('broken', async (path) => {
    const file = join(path, 'templates/ingress.yaml')
    const text = await readFile(file, 'utf8')
    await writeFile(file, text.replace('labels: { app', 'labels: { helm.sh/chart: "{{ .Chart.Version }}", app'))
    const helpers = join(path, 'templates/_pod-parts.tpl')
    await writeFile(
      helpers,
      (await readFile(helpers, 'utf8')).replace('kubernetes.io/name: weir', 'kubernetes.io/name: w'),
    )
  })
  const after = manifestsOf(await render(next, values('minimal.yaml'), ...newest))
  expect(immutableDifferences(rendered.get('minimal.yaml') ?? [], after)).toEqual([
    'Deployment shop-weir-console',
    'Deployment shop-weir-alerting',
    'Deployment shop-weir-metering',
    'StatefulSet shop-weir-ingress',
  ])
})
