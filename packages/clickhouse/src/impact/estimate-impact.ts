import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { estimateSubject, type UsageMinute, whyNotEstimated } from '@weir/core/impact/estimate-subject.ts'
import { harmlessDemand } from '@weir/core/impact/refused-between.ts'
import { refuses } from '@weir/core/limits/exceeding.ts'
import type { PolicyEdit } from '@weir/policy/impact/policy-edit.ts'
import type { ClickHouseClient } from '../connect.ts'
import { QuestionBoundMet } from '../question-bounds.ts'
import { assumedAlways, emptyAt, type Impact, ImpactSums } from './impact.ts'
import {
  impactMsMax,
  impactRowsMax,
  impactSubjectsMax,
  readBusy,
  readCorrected,
  readMinutes,
  readRefused,
  type TimeSpan,
  type UsageMinuteRow,
} from './impact-queries.ts'

const quarterMs = 900_000
const dayMs = 86_400_000
/** As many names as one statement takes in its address. */
const subjectsAtOnce = 500

/** Finds the subjects whose refusals the edit may change: those it was about then, and those it may be about. */
async function findSubjects(client: ClickHouseClient, edit: PolicyEdit, span: TimeSpan): Promise<readonly string[]> {
  const edited = [...edit.limits.keys()]
  const found = new Set(await readRefused(client, edited, span))
  for (const name of edited) {
    const routes = edit.routesOf(name)
    if (routes?.length === 0) continue
    const ofFrame = new Map<number, number>()
    for (const limit of edit.versionsOf(name)) {
      if (!refuses(limit) || whyNotEstimated(limit) !== undefined) continue
      const { frameMs, units } = harmlessDemand(limit)
      ofFrame.set(frameMs, Math.min(units, ofFrame.get(frameMs) ?? units))
    }
    for (const [frameMs, units] of ofFrame) {
      for (const subject of await readBusy(client, { frameMs, units }, routes, span)) found.add(subject)
    }
  }
  const touched = [...found].filter((subject) => edit.mayTouch(subject)).sort()
  if (touched.length > impactSubjectsMax) throw new QuestionBoundMet('too-large', undefined)
  return touched
}

/** From when on quarter hours fill the counts that run at `fromMs`, and minutes do. */
function warmUpOf(edit: PolicyEdit, fromMs: number) {
  const frames = [...edit.after.policy.limits.keys()].flatMap((name) =>
    edit.versionsOf(name).map((limit) => harmlessDemand(limit).frameMs),
  )
  const aligned = (ms: number) => ms - (ms % quarterMs)
  const longest = Math.max(0, ...frames)
  return {
    quartersFromMs: aligned(fromMs - longest),
    minutesFromMs: aligned(fromMs - Math.max(0, ...frames.filter((ms) => ms <= dayMs))),
  }
}

type Rows = readonly UsageMinuteRow[]

/** Rows by subject, each subject's together. */
async function* bySubject(rows: AsyncIterable<UsageMinuteRow>): AsyncIterable<readonly [string, Rows]> {
  let own: UsageMinuteRow[] = []
  for await (const row of rows) {
    if (own[0] !== undefined && own[0].subject !== row.subject) {
      yield [own[0].subject, own]
      own = []
    }
    own.push(row)
  }
  if (own[0] !== undefined) yield [own[0].subject, own]
}

/** What was met while estimating, for the assumptions. */
class Notes {
  readonly shared = new Set<string>()
  readonly partly = new Set<string>()
  readonly leased = new Set<string>()

  see({ limits }: UsageMinute): void {
    for (const limit of limits) {
      if (!refuses(limit)) continue
      if (whyNotEstimated(limit) !== undefined) this.shared.add(limit.name)
      else if (limit.by.some(({ kind }) => !['subject', 'key', 'route', 'method'].includes(kind)))
        this.partly.add(limit.name)
      if (limit.lease > 0) this.leased.add(limit.name)
    }
  }

  sentences(corrected: number): readonly string[] {
    const names = (limits: ReadonlySet<string>) => [...limits].sort().join(', ')
    const all = [
      'Requests to one route in one minute cost the same, unless their sum shows otherwise.',
      this.shared.size > 0 &&
        `What ${names(this.shared)} refused is refused again: subjects share these counts, or requests wait for them.`,
      this.partly.size > 0 &&
        `Only the most that ${names(this.partly)} may refuse is known: rollups do not have all that these count by.`,
      this.leased.size > 0 && `No unit of ${names(this.leased)} is left over in a lease.`,
      corrected > 0 &&
        `${corrected} subjects have costs that were corrected: theirs are taken as they were in the end, and may lie outside of the bounds.`,
    ]
    return all.filter((one) => one !== false)
  }
}

function minuteOf(edit: PolicyEdit, row: UsageMinuteRow, minutesFromMs: number): UsageMinute {
  const { key_id: keyId, method, count, units, denied_by: deniedBy } = row
  const { route, limits } = edit.resolve(row)
  const ms = row.seconds * 1_000
  return {
    ...{ ms, minutes: ms < minutesFromMs ? 15 : 1, keyId, route: row.route, method, limits, count, units, deniedBy },
    costsDiffer: route.costFrom !== undefined,
  }
}

/**
 * Estimates what an edit does to the decisions of all subjects, from rollups: what was asked for in each minute bounds
 * how much each limit refuses. Rejects with a QuestionBoundMet beyond a million minutes or ten thousand subjects.
 */
export async function estimateImpact(
  client: ClickHouseClient,
  edit: PolicyEdit,
  { fromMs, toMs }: TimeSpan,
): Promise<Impact> {
  const deadline = performance.now() + impactMsMax
  const subjects = await findSubjects(client, edit, { fromMs, toMs })
  const { quartersFromMs, minutesFromMs } = warmUpOf(edit, fromMs)
  const periodBoundaries = createBoundaryCache()
  const [sums, notes] = [new ImpactSums(edit), new Notes()]
  let [rows, corrected] = [0, 0]
  for (let at = 0; at < subjects.length; at += subjectsAtOnce) {
    const some = subjects.slice(at, at + subjectsAtOnce)
    corrected += (await readCorrected(client, some, { fromMs: quartersFromMs, toMs })).length
    const read = readMinutes(client, some, { fromMs: quartersFromMs, minutesFromMs, toMs })
    for await (const [subject, own] of bySubject(read)) {
      rows += own.length
      if (rows > impactRowsMax) throw new QuestionBoundMet('too-large', undefined)
      if (performance.now() > deadline) throw new QuestionBoundMet('timed-out', undefined)
      if (!own.some((row) => edit.isTouched(row))) continue
      const minutes = own.map((row) => minuteOf(edit, row, minutesFromMs))
      for (const minute of minutes) notes.see(minute)
      const { timeZone, anchor } = edit.resolve(own[0] ?? { subject, plan: '', route: '' }).subject
      const estimate = estimateSubject(minutes, {
        fromMs,
        boundariesAt: (unit, ms) => periodBoundaries(unit, timeZone, anchor, ms),
      })
      sums.add(subject, estimate)
    }
  }
  const whyNot = (name: string) => {
    const [limit] = edit.versionsOf(name)
    return limit === undefined || !refuses(limit) ? undefined : whyNotEstimated(limit)
  }
  const result = sums.result(whyNot)
  const assumptions = [...assumedAlways, emptyAt(quartersFromMs), ...notes.sentences(corrected)]
  return { method: 'minutes', isExact: false, assumptions, ...result }
}
