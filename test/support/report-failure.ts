import { afterAll, beforeEach, inject } from 'vitest'
import { endOfFile, forgetEnded, keepLog, reportLogs } from './servers/server-logs.ts'

// Set-up of every tier with servers: a test that fails prints what its servers wrote last, and where the rest is kept.

for (const name of ['redis', 'kafka', 'clickhouse'] as const) {
  const path = inject(`${name}Log`)
  if (path !== undefined) afterAll(keepLog(`${name}-of-the-tier`, () => endOfFile(path)))
}

beforeEach(({ task, onTestFailed }) => {
  forgetEnded()
  onTestFailed(() => {
    const report = reportLogs(`${task.file.name.replace(/^test\//, '')}-${task.name}`)
    if (report !== '') process.stderr.write(`${task.name}: what its servers wrote last\n\n${report}\n`)
  })
})
