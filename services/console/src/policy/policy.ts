import { hash } from 'node:crypto'
import { Readable } from 'node:stream'
import { type Applied, applyPolicy, getPolicy, shownChangesMax } from '@weir/api/policy.ts'
import type { TokenScope } from '@weir/policy/access-token.ts'
import type { Entity } from '@weir/policy/entities.ts'
import { type FileChange, planFile } from '@weir/policy-changes/apply-file.ts'
import { inSlices, type PolicyChanger, type Rejected, reject } from '@weir/policy-changes/change-policy.ts'
import { changeRejected, policyUnavailable } from '@weir/policy-changes/change-problems.ts'
import { exportPolicy } from '@weir/policy-changes/export-policy.ts'
import { FileParser } from '@weir/policy-changes/file-parser.ts'
import { badRequest, type Problem } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import { missingChangeScope, missingScope } from '../http/authorize.ts'
import { answerProblem, preconditionFailed } from '../http/problems.ts'
import { serve, servePolicy } from '../http/serve.ts'
import type { Sources } from '../sources.ts'
import { answerChange } from './answer-change.ts'
import { noEntity } from './entities.ts'
import { impactAnswers, registerImpact, registerLimitImpact } from './impact.ts'

/** As long as a policy may be (policy-reader.ts), plus bytes for characters beyond ASCII. */
const bodyBytesMax = 17 * 1024 * 1024
const yamlTypes = ['application/yaml', 'application/x-yaml', 'text/yaml', 'text/plain']

/** Describes what applying a file did, or would do. */
function describe(revision: string, all: readonly FileChange[], isDryRun: boolean): Applied {
  const count = (wanted: FileChange['action']) => all.filter(({ action }) => action === wanted).length
  const [created, updated, deleted] = [count('create'), count('update'), count('delete')]
  const changed = created + updated + deleted > 0
  return { dry_run: isDryRun, changed, revision, created, updated, deleted, changes: all.slice(0, shownChangesMax) }
}

function registerGet(app: FastifyInstance, sources: Sources): void {
  servePolicy(app, sources, getPolicy, async (state, request, reply) => {
    const { accept = '' } = request.headers
    const { subject } = request.query
    if (subject !== undefined && state.get('subject', subject) === undefined) {
      return answerProblem(reply, noEntity(state, 'subject', subject))
    }
    const as = accept.includes('yaml') ? 'yaml' : 'json'
    reply.header('content-type', `application/${as}`)
    reply.header('etag', newestTag(sources))
    const may = (scope: TokenScope) => missingScope(request, scope) === undefined
    const hashes = { ofKeys: may('keys'), ofTokens: may('admin') }
    return reply.send(Readable.from(exportPolicy(state, as, { subject, hashes })))
  })
}

/** The policy is as the newest change left it. */
const newestTag = ({ changes: { audit } }: Sources): string => `"${audit.page(undefined, 1)[0]?.id ?? ''}"`

/** Says who was faster, where `If-Match` no longer names the newest change. */
function overtaken(sources: Sources, ifMatch: string | undefined): Rejected | undefined {
  if (ifMatch === undefined || ifMatch === '*' || ifMatch === newestTag(sources)) return undefined
  const [newest] = sources.changes.audit.page(undefined, 1)
  const words = `${newest?.by ?? 'Another caller'} changed the policy: its ETag is now ${newestTag(sources)}.`
  return reject(preconditionFailed(words))
}

async function readFile(parser: FileParser, body: unknown): Promise<readonly Entity[] | Problem> {
  if (typeof body !== 'string' || body === '') return badRequest('Send a policy, as YAML or JSON.')
  const parsed = await parser.parse(body)
  if (parsed.kind === 'unavailable') return policyUnavailable(parsed.why)
  if (parsed.kind === 'entities') return parsed.entities
  return changeRejected(parsed.problems.map(({ file: _, ...problem }) => problem))
}

/** `GET|PUT /v1/policy`: the whole of it, as a file. */
export function registerPolicy(app: FastifyInstance, sources: Sources, changer: PolicyChanger): void {
  registerGet(app, sources)
  const parser = new FileParser()
  const answerImpact = impactAnswers(sources, changer)
  registerLimitImpact(app, answerImpact)
  // In a scope of its own, where JSON is a text like YAML: so problems have their line.
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser(['application/json', ...yamlTypes], { parseAs: 'string' }, (_request, body, done) =>
      done(null, body),
    )
    serve(
      scope,
      applyPolicy,
      async (request, reply) => {
        const { body, by, query, headers: given } = request
        const file = await readFile(parser, body)
        if ('status' in file) return answerProblem(reply, file)
        const { revision = hash('sha256', body, 'hex'), dry_run: isDryRun, if_changed } = query
        const changed = await changer.change<Applied>(by, async (state) => {
          const lastRevision = sources.changes.audit.fileRevision
          const broken = overtaken(sources, given['if-match'])
          if (broken !== undefined) return broken
          if (if_changed && lastRevision === revision)
            return { kind: 'nothing', answer: describe(revision, [], isDryRun) }
          const isEdit = given['weir-origin'] === 'admin'
          const { changes, lines, shown } = await inSlices(planFile(state, file, isEdit ? undefined : revision))
          const missing = missingChangeScope(request, state, changes)
          if (missing !== undefined) return reject(missing)
          const answer = describe(revision, shown, isDryRun)
          if (isDryRun) {
            const checked = await inSlices(state.checkSteps(changes))
            return checked.kind === 'problems' ? reject(changeRejected(checked.problems)) : { kind: 'nothing', answer }
          }
          const isNothing = isEdit ? !answer.changed : changes.length === 0 && lastRevision === revision
          return isNothing ? { kind: 'nothing', answer } : { kind: 'change', changes, lines, answer }
        })
        return answerChange(reply, changed, (result) => result)
      },
      { bodyLimit: bodyBytesMax },
    )
    registerImpact(scope, answerImpact, { bodyLimit: bodyBytesMax, readFile: (body) => readFile(parser, body) })
  })
}
