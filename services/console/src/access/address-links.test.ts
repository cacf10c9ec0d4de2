import { signAddress } from '@weir/policy/address-token.ts'
import { hashOf } from '@weir/policy/contact-targets.ts'
import { describe, expect, it } from 'vitest'
import { openConsole } from '../testing/open-console.ts'

const key = 'a key that is long enough to sign mails'
const contact = { email: ['one@acme.example', 'two@acme.example'] }
const [one, two] = contact.email.map(hashOf)
const tokenOf = (subject: string, addressHash = '', by = key) =>
  signAddress([by], 'unsubscribe', { subject, addressHash }) ?? ''

async function withContact() {
  const opened = openConsole({ unsubscribeKey: () => key })
  await opened.applyFile()
  const put = await opened.ask('PUT /v1/subjects/acme', { body: { plan: 'free', contact } })
  expect(put.statusCode).toBe(200)
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  const post = (token: string, headers: Record<string, string> = form, body = 'List-Unsubscribe=One-Click') =>
    opened.app.inject({ method: 'POST', url: `/unsubscribe/${token}`, headers, body })
  const get = (token: string) => opened.app.inject({ url: `/unsubscribe/${token}` })
  const entries = () => Object.fromEntries(opened.store.state.policy.unsubscribed)
  return { ...opened, post, get, entries }
}

describe('the link to unsubscribe', () => {
  it('shows a page with a button, and only what is posted changes anything', async () => {
    const { get, post, entries, store, ask } = await withContact()
    const published = store.published.length
    const page = await get(tokenOf('acme', one))
    expect([page.statusCode, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
    expect(page.body).toContain('<form method="post"><button>Unsubscribe</button></form>')
    expect(page.headers).toMatchObject({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
    expect([store.published.length, entries()]).toEqual([published, {}])

    expect((await post(tokenOf('acme', one))).statusCode).toBe(200)
    expect(entries()).toEqual({ acme: [one] })
    expect((await ask('/v1/changes?limit=1')).json().items[0]).toMatchObject({
      by: 'unsubscribe',
      summary: [{ what: 'put', kind: 'unsubscribed', name: 'acme' }],
    })
    const after = store.published.length
    expect((await post(tokenOf('acme', one), {}, '')).statusCode).toBe(200)
    expect(store.published).toHaveLength(after)
    const boundary = { 'content-type': 'multipart/form-data; boundary=x' }
    const part = '--x\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--x--\r\n'
    expect((await post(tokenOf('acme', two), boundary, part)).statusCode).toBe(200)
    expect(entries()).toEqual({ acme: [one, two] })
  })

  it('stays opted out when a file is applied, and a person may let the address have mail again', async () => {
    const { post, entries, ask, applyFile } = await withContact()
    await post(tokenOf('acme', one))
    expect((await applyFile()).statusCode).toBe(200)
    expect(entries()).toEqual({ acme: [one] })
    expect((await ask('/v1/unsubscribed')).json().items).toMatchObject([{ name: 'acme', body: { email: [one] } }])
    expect((await ask('DELETE /v1/unsubscribed/acme', { token: 'reader-token' })).statusCode).toBe(403)
    expect((await ask('DELETE /v1/unsubscribed/acme')).statusCode).toBe(204)
    expect(entries()).toEqual({})
  })

  it('shows the name of a subject as text', async () => {
    const { get } = await withContact()
    const { body } = await get(tokenOf('<script>"x', one))
    expect(body).toContain('&lt;script&gt;&quot;x')
    expect(body).not.toContain('<script')
  })

  it('is unknown without a key', async () => {
    const { app } = openConsole()
    expect((await app.inject({ url: `/unsubscribe/${tokenOf('acme', one)}` })).statusCode).toBe(404)
  })
})
