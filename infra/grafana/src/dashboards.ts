import { limits } from './limits.ts'
import { overview } from './overview.ts'
import { build } from './panels.ts'
import { pipeline } from './pipeline.ts'
import { redis } from './redis.ts'
import { usage } from './usage.ts'

/** The text of each file of infra/grafana/dashboards. */
export const dashboardFiles = (): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries({ overview, limits, redis, pipeline, usage }).map(([name, page]) => [
      `${name}.json`,
      `${JSON.stringify(build(page), undefined, 1)}\n`,
    ]),
  )
