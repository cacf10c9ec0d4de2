/* Writes infra/grafana/dashboards: node infra/grafana/src/main.ts */
import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { dashboardFiles } from './dashboards.ts'

const folder = resolve(import.meta.dirname, '../dashboards')
for (const [name, text] of Object.entries(dashboardFiles())) writeFileSync(resolve(folder, name), text)
