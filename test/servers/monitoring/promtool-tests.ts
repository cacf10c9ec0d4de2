import { type RuleCase, shortMinutes } from './rule-cases.ts'

type Series = Readonly<Record<string, string>>

interface Trial {
  /** What is shown if it fails. */
  readonly title: string
  readonly rule: string
  readonly series: Series
  readonly minutes: number
  /** The rules that fire at the end of the series. */
  readonly firing: readonly string[]
}

/** The rule of a case: the alert and its severity. */
export const ruleOf = (name: string): string => name.split(',')[0] ?? ''

/** Each case with the value that fires, with the one that does not, and without the first of its series. */
function trialsOf([name, { series, minutes = shortMinutes, ...given }]: [string, RuleCase]): readonly Trial[][] {
  const { fires, silent, still = [], also = [] } = given
  const rule = ruleOf(name)
  const [, ...others] = Object.entries(series(fires))
  return [
    [
      {
        title: `${name}: fires with ${fires}`,
        rule,
        series: series(fires),
        minutes,
        firing: [rule, ...still, ...also],
      },
    ],
    [{ title: `${name}: does not with ${silent}`, rule, series: series(silent), minutes, firing: still }],
    [
      {
        title: `${name}: nor without its series`,
        rule,
        series: Object.fromEntries(others),
        minutes: Math.min(minutes, 70),
        firing: [],
      },
    ],
  ]
}

const metricOf = (series: string) => series.replace(/\{.*/, '')

/** Trials of equal length that share neither rules nor metrics run as one: promtool evaluates all rules for each. */
function gathered(trials: readonly Trial[]): Trial[][] {
  const together: { readonly names: Set<string>; readonly trials: Trial[] }[] = []
  for (const trial of trials) {
    const names = [trial.rule, ...Object.keys(trial.series).map(metricOf)]
    const isFree = ({ names: taken, trials: [first] }: (typeof together)[number]) =>
      first?.minutes === trial.minutes && names.every((name) => !taken.has(name))
    const group = together.find(isFree)
    for (const name of names) group?.names.add(name)
    if (group === undefined) together.push({ names: new Set(names), trials: [trial] })
    else group.trials.push(trial)
  }
  return together.map((one) => one.trials)
}

const alertOf = (rule: string) => rule.split(' ')[0] ?? ''

function expectFiring(title: string, matcher: string, rules: readonly string[], minutes: number) {
  return {
    expr: `group by (alertname, severity) (ALERTS{alertstate="firing",alertname${matcher}}) # ${title}`,
    eval_time: `${minutes}m`,
    exp_samples: rules.map((rule) => ({
      labels: `{alertname="${alertOf(rule)}",severity="${rule.split(' ')[1]}"}`,
      value: 1,
    })),
  }
}

function promtoolTest(trials: readonly Trial[]) {
  const [{ minutes } = { minutes: shortMinutes }] = trials
  const firing = new Set(trials.flatMap((one) => one.firing))
  const others = [...new Set([...firing].map(alertOf))].join('|')
  return {
    interval: minutes === shortMinutes ? '30s' : '1m',
    input_series: trials.flatMap(({ series }) =>
      Object.entries(series).map(([name, values]) => ({ series: name, values })),
    ),
    promql_expr_test: [
      ...trials.map(({ title, rule, firing }) => {
        const own = firing.filter((one) => alertOf(one) === alertOf(rule))
        return expectFiring(title, `="${alertOf(rule)}"`, own, minutes)
      }),
      expectFiring(`no others: ${trials.map(({ title }) => title)}`, `!~"${others}"`, [], minutes),
    ],
  }
}

/** The tests of promtool for these cases, by how often rules are to be evaluated in them. */
export function promtoolTests(cases: Readonly<Record<string, RuleCase>>) {
  const kinds = Object.entries(cases).map(trialsOf)
  const all = [0, 1, 2].flatMap((kind) => gathered(kinds.flatMap((one) => one[kind] ?? [])))
  const isWithin =
    (from: number, to: number) =>
    ([first]: readonly Trial[]) =>
      first !== undefined && first.minutes >= from && first.minutes < to
  return {
    '1m': all.filter(isWithin(0, 60)).map(promtoolTest),
    '5m': all.filter(isWithin(60, 1_000)).map(promtoolTest),
    '15m': all.filter(isWithin(1_000, 10_000)).map(promtoolTest),
  }
}
