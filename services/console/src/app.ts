import { maxHeaderSize } from 'node:http'
import AjvCompiler from '@fastify/ajv-compiler'
import swagger from '@fastify/swagger'
import { registerPage } from '@weir/page/serve-page.ts'
import { PolicyChanger } from '@weir/policy-changes/change-policy.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { answerErrorsAndUnrouted, boundHeaders, listenerOptions } from '@weir/runtime/problem.ts'
import { serveDescription } from '@weir/runtime/serve-description.ts'
import type { ListenerTls } from '@weir/runtime/tls-listener.ts'
import fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify'
import { registerAddressLinks } from './access/address-links.ts'
import { registerKeys } from './access/keys.ts'
import { registerOwnAlerts } from './access/own-alerts.ts'
import { registerPortal } from './access/portal.ts'
import { registerSession } from './access/session.ts'
import { registerTokens } from './access/tokens.ts'
import { registerAlerts } from './alerts/alerts.ts'
import { registerSilences } from './alerts/silences.ts'
import { registerDecisions } from './decisions/decisions.ts'
import { registerDecisionList } from './decisions/list-decisions.ts'
import { registerDecisionStream } from './decisions/stream-decisions.ts'
import { answerPrivately } from './http/answer-privately.ts'
import { requireCallers } from './http/authorize.ts'
import { createCallerFinder } from './http/caller.ts'
import { compressAnswers } from './http/compress-answers.ts'
import { description } from './http/description.ts'
import { compileLazily } from './http/lazy-schemas.ts'
import { admitPortalPages } from './http/portal-pages.ts'
import { bodyBytesMax, readJson } from './http/read-json.ts'
import { boundQuestions } from './http/semaphore.ts'
import { Sessions } from './http/sessions.ts'
import { registerBlocks } from './limits/blocks.ts'
import { registerBlockLift } from './limits/lift-block.ts'
import { registerLimitChanges } from './limits/limit-changes.ts'
import { registerManualBlocks } from './limits/manual-blocks.ts'
import { registerSubjectLimits } from './limits/subject-limits.ts'
import { registerUsageExport } from './money/export-usage.ts'
import { registerMonthSpend } from './money/month-spend.ts'
import { registerPrices } from './money/prices.ts'
import { registerSpend } from './money/spend.ts'
import { registerChange } from './policy/change.ts'
import { registerChanges } from './policy/changes.ts'
import { registerEntities } from './policy/entities.ts'
import { registerPolicy } from './policy/policy.ts'
import type { Sources } from './sources.ts'
import { registerSearch } from './status/search.ts'
import { registerStatus } from './status/status.ts'
import { registerDimensions } from './usage/dimensions.ts'
import { registerUsage } from './usage/usage.ts'
import { registerUtilization } from './usage/utilization.ts'

/** Names stand in paths percent-encoded: an id of 255 characters is three times as long there, a route longer still. */
const nameLengthMax = 4_096

/** Unauthenticated callers hold at most 30 kB each: a head, a body for `/session`. More are turned away. */
const connectionsMax = 2_000

/** The problems that a person reads; a body of 256 kB may hold 20,000. */
const schemaProblemsMax = 20

/** Says which keys are too many: Ajv's own words do not. */
const wordSchemaProblems: NonNullable<FastifyServerOptions['schemaErrorFormatter']> = (problems, where) => {
  const shown = problems.slice(0, schemaProblemsMax).map(({ instancePath, message = 'is not valid', params }) => {
    const { additionalProperty } = params
    const named = additionalProperty === undefined ? '' : `: ${JSON.stringify(additionalProperty)}`
    return `${where}${instancePath} ${message}${named}`
  })
  const more = problems.length - shown.length
  return new Error(`${shown.join(', ')}${more > 0 ? `, and ${more} more` : ''}`)
}

/** Members that a body may not have are rejected by name instead of dropped, and all of them in one answer. */
const schemaCompiler = (coerceTypes: 'array' | false) =>
  AjvCompiler()({}, { customOptions: { removeAdditional: false, allErrors: true, coerceTypes } })

/** Parameters are text, and read as what their schema says. JSON says itself what a value is: null is no 0. */
const [compileParameters, compileBody] = [schemaCompiler('array'), schemaCompiler(false)]

/** Builds the usage API and the admin API. Opens no port: tests use `inject`. */
export function buildApp(
  sources: Sources,
  logger: Logger,
  adminTokenSha256: () => string,
  tls?: ListenerTls,
): FastifyInstance {
  const app: FastifyInstance = fastify({
    ...listenerOptions(logger, tls),
    bodyLimit: bodyBytesMax,
    routerOptions: { maxParamLength: nameLengthMax, ignoreTrailingSlash: true },
    schemaErrorFormatter: wordSchemaProblems,
  })
  app.server.maxConnections = connectionsMax
  compileLazily(app, (route) => (route.httpPart === 'body' ? compileBody : compileParameters)(route))
  answerErrorsAndUnrouted(app, 'GET /openapi.json lists them')
  readJson(app)
  boundHeaders(app, maxHeaderSize)
  const nowMs = () => sources.clock.nowMs()
  const findCredential = createCallerFinder({
    rootSha256: adminTokenSha256,
    portalKey: sources.access.portalKey,
    policy: () => sources.policy.state?.policy,
    nowMs,
  })
  const sessions = new Sessions({ publicUrl: sources.access.publicUrl, hasTls: tls !== undefined }, nowMs)
  admitPortalPages(app, sources.access.portalOrigins)
  // Once these are in: a preflight has no credential.
  app.after(() => {
    requireCallers(app, findCredential, sessions)
    boundQuestions(app, sources.semaphores.questions)
    answerPrivately(app)
    compressAnswers(app)
  })
  const changer = new PolicyChanger(sources, logger)
  app.register(swagger, description)
  app.register(async (api) => {
    registerSession(api, sessions, findCredential, sources.access.vendor)
    registerUsage(api, sources)
    registerUsageExport(api, sources)
    registerDimensions(api, sources)
    registerUtilization(api, sources)
    registerDecisions(api, sources)
    registerDecisionList(api, sources)
    registerDecisionStream(api, sources)
    registerAlerts(api, sources)
    registerPolicy(api, sources, changer)
    registerEntities(api, sources, changer)
    registerPrices(api, sources)
    registerSpend(api, sources)
    registerMonthSpend(api, sources)
    registerKeys(api, sources, changer)
    registerSubjectLimits(api, sources)
    registerLimitChanges(api, sources, changer)
    registerBlocks(api, sources)
    registerManualBlocks(api, sources, changer)
    registerBlockLift(api, sources, changer)
    registerTokens(api, sources, changer)
    registerPortal(api, sources, changer)
    registerSilences(api, sources, changer)
    registerAddressLinks(api, sources, changer)
    registerOwnAlerts(api, sources, changer)
    registerChanges(api, sources)
    registerChange(api, sources)
    registerStatus(api, sources)
    registerSearch(api, sources)
    registerPage(api)
    serveDescription(api, () => api.swagger())
  })
  return app
}
