import { describe, expect, it } from 'vitest'
import { nowMs, openConsole } from '../testing/open-console.ts'

const [minuteMs, dayMs] = [60_000, 86_400_000]
const at = (ms: number) => new Date(ms).toISOString()

async function withPolicy() {
  let now = nowMs
  const opened = openConsole({ clock: { nowMs: () => now } })
  await opened.applyFile()
  const { ask } = opened
  return {
    ...opened,
    wait: (ms: number) => (now += ms),
    add: async (body: object) => ask('POST /v1/silences', { body }),
    list: async () => (await ask('/v1/silences')).json().items,
    silences: () => opened.store.state?.policy.silences,
  }
}

describe('a silence', () => {
  it('begins now, has an author and an end, and is in the audit', async () => {
    const { ask, add, list } = await withPolicy()
    const made = await ask('POST /v1/silences', {
      token: 'writer-token',
      body: { subjects: ['acme'], types: ['weir.quota.reached'], for: '2h', reason: 'load test' },
    })
    const { name, ...rest } = made.json()
    expect([made.statusCode, rest]).toEqual([
      201,
      {
        subjects: ['acme'],
        types: ['weir.quota.reached'],
        reason: 'load test',
        by: 'writer',
        state: 'active',
        from: at(nowMs),
        until: at(nowMs + 120 * minuteMs),
      },
    ])
    expect(await list()).toEqual([made.json()])
    const { items } = (await ask('/v1/changes?limit=1')).json()
    expect(items).toMatchObject([{ by: 'writer', summary: [{ what: 'create', kind: 'silence', name }] }])
    expect((await add({ limits: ['minute'], for: '1m', from: at(nowMs + minuteMs) })).json().state).toBe('pending')
  })

  it.each([
    [{ for: '1h' }, 422],
    [{ subjects: ['acme'] }, 400],
    [{ subjects: ['acme'], for: '59s' }, 422],
    [{ subjects: ['acme'], for: '30d' }, 201],
    [{ subjects: ['acme'], for: '31d' }, 422],
    [{ subjects: ['acme'], for: '1h', from: at(nowMs - minuteMs) }, 201],
    [{ subjects: ['acme'], for: '1h', from: at(nowMs - minuteMs - 1) }, 422],
    [{ subjects: ['acme'], for: '1h', from: at(nowMs + 91 * dayMs) }, 422],
    [{ subjects: ['acme'], for: '1h', from: 'tomorrow' }, 422],
    [{ subjects: ['acme'], for: '1h', by: 'somebody' }, 400],
    [{ types: ['weir.quota'], for: '1h' }, 422],
    [{ subjects: ['acme'], for: '1h', reason: 'x'.repeat(201) }, 422],
  ])('asked for as %j is answered with %i', async (body, status) => {
    expect((await (await withPolicy()).add(body)).statusCode).toBe(status)
  })

  it('never begins before it was made, however far behind the clock of the caller is', async () => {
    const { add } = await withPolicy()
    expect((await add({ subjects: ['acme'], for: '1h', from: at(nowMs - minuteMs) })).json().from).toBe(at(nowMs))
  })

  it('that is ended keeps its beginning, so that what it silenced stays silenced', async () => {
    const { ask, add, list, wait } = await withPolicy()
    const { name } = (await add({ subjects: ['acme'], for: '1h' })).json()
    wait(minuteMs)
    expect((await ask(`DELETE /v1/silences/${name}`)).statusCode).toBe(204)
    expect(await list()).toMatchObject([{ name, from: at(nowMs), until: at(nowMs + minuteMs), state: 'ended' }])
    wait(minuteMs)
    const again = await ask(`DELETE /v1/silences/${name}`)
    expect([again.statusCode, again.headers['weir-change']]).toEqual([204, undefined])
    expect((await ask('DELETE /v1/silences/none')).statusCode).toBe(404)
  })

  it('that has not begun is deleted when it is ended', async () => {
    const { ask, add, list } = await withPolicy()
    const { name } = (await add({ subjects: ['acme'], for: '1h', from: at(nowMs + minuteMs) })).json()
    expect((await ask(`DELETE /v1/silences/${name}`)).statusCode).toBe(204)
    expect(await list()).toEqual([])
  })

  it('that ended is kept for five days, and deleted with the next one that is made', async () => {
    const { add, list, wait } = await withPolicy()
    const { name } = (await add({ subjects: ['acme'], for: '1m' })).json()
    const names = async () => (await list()).map((one: { name: string }) => one.name)
    wait(minuteMs + 5 * dayMs)
    await add({ subjects: ['bolt'], for: '1m' })
    expect(await names()).toContain(name)
    wait(1)
    await add({ subjects: ['bolt'], for: '1m' })
    expect(await names()).not.toContain(name)
  })

  it('is not opened again by a file from before it was ended', async () => {
    const { ask, add, wait, silences } = await withPolicy()
    const { name } = (await add({ subjects: ['acme'], for: '1h' })).json()
    const before = (await ask('/v1/policy')).body
    wait(minuteMs)
    await ask(`DELETE /v1/silences/${name}`)
    expect((await ask('PUT /v1/policy', { body: before })).statusCode).toBe(200)
    expect(silences()?.get(name)?.untilMs).toBe(nowMs + minuteMs)
  })
})
