import { execFile } from 'node:child_process'
import { resolve } from 'node:path'
import { promisify } from 'node:util'
import { parseAllDocuments } from 'yaml'
import { goProgram } from '../support/go-program.ts'

const modules = resolve(import.meta.dirname, '../support/go-tools')

/** Versions are those of the go.mod files, which a test compares. */
export const goTools = {
  helm: { name: 'helm', module: resolve(modules, 'helm'), version: 'v3.16.4', path: 'helm.sh/helm/v3/cmd/helm' },
  kubectlValidate: {
    name: 'kubectl-validate',
    module: resolve(modules, 'kubectl-validate'),
    version: 'v0.0.4',
    path: 'sigs.k8s.io/kubectl-validate',
  },
} as const

/** How a program ended, with all that it said. */
export interface Ended {
  readonly code: number
  readonly text: string
}

/** Runs one of the tools to its end. */
export async function runTool(tool: keyof typeof goTools, ...args: string[]): Promise<Ended> {
  const program = await goProgram(goTools[tool])
  try {
    const { stdout, stderr } = await promisify(execFile)(program, args, { maxBuffer: 32 * 1024 ** 2 })
    return { code: 0, text: stdout + stderr }
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number | string; stdout: string; stderr: string }
    if (typeof code !== 'number') throw error
    return { code, text: stdout + stderr }
  }
}

/** An object of Kubernetes, as far as the tests look at it. */
export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> }
  readonly spec?: Readonly<Record<string, unknown>> & { readonly template?: { readonly spec: PodSpec } }
}

interface PodSpec {
  readonly automountServiceAccountToken: boolean
  readonly securityContext: Readonly<Record<string, unknown>>
  readonly containers: readonly {
    readonly name: string
    readonly env: readonly { readonly name: string; readonly value: string }[]
    readonly securityContext: unknown
    readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[]
  }[]
  readonly volumes: readonly { readonly name: string }[]
}

/** What `helm template` makes of a chart. Rejects with what it said if it refuses. */
export async function render(chart: string, values: string, ...args: string[]): Promise<string> {
  const { code, text } = await runTool(
    'helm',
    'template',
    'shop',
    chart,
    '--namespace',
    'weir',
    '--values',
    values,
    ...args,
  )
  if (code !== 0) throw new Error(text)
  return text
}

/** The objects of a rendered chart. */
export const manifestsOf = (text: string): Manifest[] =>
  parseAllDocuments(text).flatMap((one) => (one.toJS() === null ? [] : [one.toJS()]))
