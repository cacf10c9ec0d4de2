import { connectClickhouse } from '@weir/clickhouse/connect.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { expectHundredOfThousand, expectTwoAlerts, type Pipeline, sums } from '../support/pipeline.ts'
import { type RunningWeir, weirUp } from '../support/weir-up.ts'

let weir: RunningWeir
let pipeline: Pipeline
beforeAll(async () => {
  weir = await weirUp()
  const { ingress, receiver, demoKey, demoSmallKey, kafka, clickhouse } = weir.line
  pipeline = {
    ...{ ingress, receiver, demoKey: demoKey ?? '', demoSmallKey: demoSmallKey ?? '' },
    kafka: { brokers: [kafka], clientId: 'smoke', log: createLogger('smoke', 'silent') },
    clickhouse: connectClickhouse(clickhouse, 'smoke'),
  }
})
afterAll(async () => {
  await pipeline?.clickhouse.close()
  await weir?.close()
})

describe('the whole pipeline', () => {
  it('admits exactly 100 of 1,000 requests from 8 connections, and counts every one of them in Kafka, raw and rollups', () =>
    expectHundredOfThousand(pipeline))

  it('raises exactly two alerts on a quota of 20 a day, and the receiver verifies exactly two webhooks', () =>
    expectTwoAlerts(pipeline))

  it('answers who used what from the rollups', async () => {
    await fetch(`${weir.line.ingress}/hello`, { headers: { 'x-api-key': pipeline.demoSmallKey } })
    const url = `${weir.line.console}/v1/usage?subject=demo-small&by=outcome&step=total`
    const headers = { authorization: `Bearer ${weir.line.adminToken}` }
    const rows = await waitUntil(
      async () => {
        const answer = (await (await fetch(url, { headers })).json()) as { rows: { outcome: string; count: string }[] }
        return answer.rows[1]?.count === '6' && answer.rows
      },
      { deadlineMs: 5_000 },
    )
    expect(rows).toEqual([
      expect.objectContaining({ outcome: 'allow', count: '20', cost: '20' }),
      expect.objectContaining({ outcome: 'deny', count: '6', cost: '0' }),
    ])
    expect((await fetch(url)).status).toBe(401)
  })

  it('records a request without a valid key too, and tells nothing but to bring one', async () => {
    const answer = await fetch(`${weir.line.ingress}/hello`)
    expect(answer.status).toBe(401)
    expect(answer.headers.get('www-authenticate')).toBe('Bearer')
    expect(answer.headers.get('ratelimit')).toBe('"unauthenticated";r=0')
    const seen = await waitUntil(
      async () => (await sums(pipeline, 'decisions', "subject = '_unauthenticated'"))?.decisions === 1,
      {
        deadlineMs: 5_000,
      },
    )
    expect(seen).toBe(true)
  })
})
