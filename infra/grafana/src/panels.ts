import type { Builder, Dataquery } from '@grafana/grafana-foundation-sdk/cog'
import * as common from '@grafana/grafana-foundation-sdk/common'
import { LegendDisplayMode, LegendPlacement } from '@grafana/grafana-foundation-sdk/common'
import type { Dashboard, Panel, VariableModel } from '@grafana/grafana-foundation-sdk/dashboard'
import * as dashboard from '@grafana/grafana-foundation-sdk/dashboard'
import { DataqueryBuilder } from '@grafana/grafana-foundation-sdk/prometheus'
import * as table from '@grafana/grafana-foundation-sdk/table'
import * as timeseries from '@grafana/grafana-foundation-sdk/timeseries'

const prometheus = { type: 'prometheus', uid: '$' + '{prometheus}' }
const clickhouse = { type: 'grafana-clickhouse-datasource', uid: '$' + '{clickhouse}' }

/** What selects the series of the processes that are chosen above a dashboard. */
export const chosen = 'job=~"$job",instance=~"$instance"'

/** Where a panel stands is worked out from the order in which panels come: three beside each other. */
const size = { w: 8, h: 8 }

const refId = (at: number) => String.fromCharCode(65 + at)

/** A panel without its number. */
export type Numbered = (id: number) => Builder<Panel>

function lines(title: string, description: string, unit: string) {
  return new timeseries.PanelBuilder()
    .title(title)
    .description(description)
    .unit(unit)
    .min(0)
    .span(size.w)
    .height(size.h)
    .fillOpacity(10)
    .showPoints(common.VisibilityMode.Never)
    .legend(
      new common.VizLegendOptionsBuilder()
        .displayMode(LegendDisplayMode.List)
        .placement(LegendPlacement.Bottom)
        .showLegend(true),
    )
}

/** Lines over time, by the text of their legend. `description` says what an operator reads off them. */
export const panel =
  (title: string, description: string, unit: string, targets: Readonly<Record<string, string>>): Numbered =>
  (id) =>
    lines(title, description, unit)
      .id(id)
      .datasource(prometheus)
      .targets(
        Object.entries(targets).map(([legend, expr], at) =>
          new DataqueryBuilder().refId(refId(at)).datasource(prometheus).expr(expr).legendFormat(legend).range(),
        ),
      )

/** A question to ClickHouse. The plugin's types are in no library: this is what it stores. */
const sql = (rawSql: string, format: 'timeseries' | 'table'): Builder<Dataquery> => ({
  build: () => ({
    refId: 'A',
    datasource: clickhouse,
    editorType: 'sql',
    rawSql,
    queryType: format,
    format: format === 'timeseries' ? 0 : 1,
    _implementsDataqueryVariant() {},
  }),
})

/** Lines over time out of ClickHouse: the columns `time`, the legend's, and the number. */
export const sqlPanel =
  (title: string, description: string, unit: string, rawSql: string): Numbered =>
  (id) =>
    lines(title, description, unit)
      .id(id)
      .datasource(clickhouse)
      .targets([sql(rawSql, 'timeseries')])

/** A table out of ClickHouse. `units` are those of columns. */
export const sqlTable =
  (title: string, description: string, rawSql: string, units: Readonly<Record<string, string>> = {}): Numbered =>
  (id) => {
    const built = new table.PanelBuilder()
      .id(id)
      .title(title)
      .description(description)
      .span(size.w)
      .height(size.h)
      .datasource(clickhouse)
      .targets([sql(rawSql, 'table')])
    for (const [column, unit] of Object.entries(units)) built.overrideByName(column, [{ id: 'unit', value: unit }])
    return built
  }

/** A dashboard: rows of panels by their headings. */
export interface Page {
  readonly uid: string
  readonly title: string
  readonly description: string
  readonly variables: readonly Builder<VariableModel>[]
  readonly rows: Readonly<Record<string, readonly Numbered[]>>
}

const source = (name: string, label: string, type: string) =>
  new dashboard.DatasourceVariableBuilder(name).label(label).type(type)

const values = (name: string, query: string) =>
  new dashboard.QueryVariableBuilder(name)
    .query(query)
    .datasource(prometheus)
    .refresh(dashboard.VariableRefresh.OnTimeRangeChanged)
    .multi(true)
    .includeAll(true)
    .allValue('.*')
    .current({ text: 'All', value: '$__all' })

/** The variables of a dashboard of metrics: which Prometheus, services and processes. */
export const processVariables = (): readonly Builder<VariableModel>[] => [
  source('prometheus', 'Prometheus', 'prometheus'),
  values('job', 'label_values(up{job=~"weir-.*"}, job)'),
  values('instance', 'label_values(up{job=~"$job"}, instance)'),
]

/** The variables of a dashboard of usage. */
export const usageVariables = (): readonly Builder<VariableModel>[] => [
  source('clickhouse', 'ClickHouse', 'grafana-clickhouse-datasource'),
  new dashboard.TextBoxVariableBuilder('subject').label('Subject'),
]

/** Builds a dashboard: its panels are numbered in their order. */
export function build({ uid, title, description, variables, rows }: Page): Dashboard {
  const built = new dashboard.DashboardBuilder(title)
    .uid(uid)
    .description(description)
    .tags(['weir'])
    .refresh('30s')
    .time({ from: 'now-6h', to: 'now' })
    .timezone('browser')
    .tooltip(dashboard.DashboardCursorSync.Crosshair)
    .variables([...variables])
  let id = 0
  const next = () => {
    id += 1
    return id
  }
  for (const [name, panels] of Object.entries(rows)) {
    built.withRow(new dashboard.RowBuilder(name).id(next()))
    for (const one of panels) built.withPanel(one(next()))
  }
  return built.build()
}
