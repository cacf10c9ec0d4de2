/**
 * A load that outlives whatever it loads, and keeps a ledger of what it was answered: a program of its own, so that no
 * fault of the tests' process stalls it. `load-program.ts PLAN` (JSON, load-plan.ts). Ends when standard input does.
 */
import { openSync, writeSync } from 'node:fs'
import { type Reason, reasons } from '@weir/core/limits/decision.ts'
import { encodeEntry, packId, unpackId } from './ledger.ts'
import { LedgerConnection, type RawAnswer } from './ledger-connection.ts'
import { type LoadPlan, type LoadProgress, lastIdPlace } from './load-plan.ts'

/** Requests begin in groups at this pace, so that the rate does not hang on the precision of timers. */
const tickMs = 5
const reportMs = 100
const openAgainMs = 50
/** After a stand-still the rate is taken up again, not caught up on. */
const arrearsMs = 250
/** Answers under way at the end get so long; what is still missing then was cut off. */
const lastAnswersMs = 15_000

const plan: LoadPlan = JSON.parse(process.argv[2] ?? '')
const ledger = openSync(plan.ledgerFile, 'a')
const beganMs = performance.now()
const elapsed = () => performance.now() - beganMs

let unwritten: Buffer[] = []
let [answered, decided, cutOff, unrecorded, underWay, lastDecidedMs] = [0, 0, 0, 0, 0, 0]
let lastId = ''
const undecided: Record<string, number> = {}
const idle: number[] = []

const byStatus: ReadonlyMap<number, Reason> = new Map([
  [200, 'ok'],
  [401, 'unauthorized'],
  [429, 'limit'],
])

/** What was decided, from a check's body or a proxied answer's status; undefined for a fault before that. */
function verdictOf({
  id,
  status,
  body,
}: RawAnswer): { readonly allowed: boolean; readonly reason: Reason } | undefined {
  if (body.includes('could not be recorded')) return { allowed: false, reason: 'journal_full' }
  const said = /"reason":"(\w+)"/.exec(body)?.[1]
  const known = reasons.find((reason) => reason === said) ?? byStatus.get(status)
  const allowed = body.includes('"allowed":') ? body.includes('"allowed":true') : status === 200
  if (known !== undefined) return { allowed, reason: known }
  return id === undefined ? undefined : { allowed, reason: 'unavailable' }
}

function keep(connection: number, answer: RawAnswer, latencyMs: number): void {
  const { id, status } = answer
  const verdict = verdictOf(answer)
  if (verdict === undefined) {
    undecided[status] = (undecided[status] ?? 0) + 1
    return
  }
  const atMs = elapsed()
  const packed = id === undefined ? '' : packId(id)
  unwritten.push(encodeEntry({ id: packed, status, ...verdict, connection, atMs, latencyUs: latencyMs * 1_000 }))
  if (id === undefined) {
    unrecorded += 1
    return
  }
  answered += 1
  lastId = packed
  if (verdict.reason !== 'unavailable') {
    decided += 1
    lastDecidedMs = atMs
  }
}

const connections = plan.connections.map(({ port, requests, timesEach }, index) => {
  const texts = requests.map((text) => ({ bytes: Buffer.from(text, 'latin1'), idAt: text.indexOf(lastIdPlace) }))
  const connection = new LedgerConnection(port, {
    onIdle: () => idle.push(index),
    onGone: () => {
      const at = idle.indexOf(index)
      if (at !== -1) idle.splice(at, 1)
    },
  })
  let sent = 0
  /** Of the last answer, if it admitted. */
  let admitted: string | undefined
  const next = () => {
    const request = texts[Math.floor(sent / timesEach) % texts.length]
    sent += 1
    return request
  }
  return {
    openAgain: () => connection.openAgain(),
    async ask() {
      let request = next()
      // What never began is not ended.
      while (request !== undefined && request.idAt >= 0 && admitted === undefined) request = next()
      if (request === undefined) return
      const { bytes, idAt } = request
      if (idAt >= 0) bytes.write(admitted ?? '', idAt, 'latin1')
      underWay += 1
      const startedMs = performance.now()
      const answer = await connection.ask(bytes)
      underWay -= 1
      admitted = idAt < 0 && answer?.body.includes('"allowed":true') === true ? answer.id : undefined
      if (idAt >= 0) return
      if (answer === undefined) cutOff += 1
      else keep(index, answer, performance.now() - startedMs)
    },
  }
})

let due = 0
let lastTickMs = elapsed()
const ticks = setInterval(() => {
  const now = elapsed()
  due = Math.min(due + ((now - lastTickMs) / 1_000) * plan.perSecond, (arrearsMs / 1_000) * plan.perSecond)
  lastTickMs = now
  for (; due >= 1; due -= 1) {
    const next = idle.shift()
    if (next === undefined) break
    void connections[next]?.ask()
  }
}, tickMs)

function report(): void {
  if (unwritten.length > 0) writeSync(ledger, Buffer.concat(unwritten))
  unwritten = []
  const progress: LoadProgress = {
    answered,
    decided,
    cutOff,
    undecided,
    unrecorded,
    lastDecidedMs,
    elapsedMs: elapsed(),
    lastId: lastId === '' ? '' : unpackId(lastId),
  }
  process.stdout.write(`${JSON.stringify(progress)}\n`)
}
const reports = setInterval(report, reportMs)
// A server that is being started refuses connections; it is asked again soon.
const openings = setInterval(() => {
  for (const connection of connections) connection.openAgain()
}, openAgainMs)

process.stdin.resume()
process.stdin.once('end', () => {
  clearInterval(ticks)
  const endsAtMs = elapsed() + lastAnswersMs
  const last = setInterval(() => {
    if (underWay > 0 && elapsed() < endsAtMs) return
    clearInterval(last)
    clearInterval(reports)
    clearInterval(openings)
    cutOff += underWay
    report()
    process.exit(0)
  }, tickMs)
})
