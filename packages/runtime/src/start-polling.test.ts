import { expect, onTestFinished, test, vi } from 'vitest'
import { createLogger } from './logger.ts'
import { startPolling } from './start-polling.ts'

test('What is not answered in time, or with an error, is not known; it is asked once at a time, and a late answer is one', async () => {
  const log = createLogger('test', 'silent')
  const warned = vi.spyOn(log, 'warn')
  const stopping = new AbortController()
  onTestFinished(() => stopping.abort())
  const run = { stopping: stopping.signal }
  const questions: PromiseWithResolvers<number>[] = []
  const ask = () => {
    const question = Promise.withResolvers<number>()
    questions.push(question)
    return question.promise
  }
  const polled = startPolling('numbers', { everyMs: 1, deadlineMs: 500, ask }, { run, log })
  const late = 'no response within 500 ms'
  await vi.waitFor(() => expect(polled).toEqual({ answer: undefined, problem: late }))
  expect(questions.length).toBe(1)
  questions[0]?.resolve(7)
  await vi.waitFor(() => expect(polled).toEqual({ answer: 7, problem: undefined }))
  await vi.waitFor(() => expect(questions.length).toBe(2))
  questions[1]?.reject(new Error('refused'))
  await vi.waitFor(() => expect(polled).toEqual({ answer: undefined, problem: 'refused' }))
  await vi.waitFor(() => expect(questions.length).toBe(3))
  questions[2]?.reject(new Error('refused'))
  await vi.waitFor(() => expect(questions.length).toBe(4))
  expect(warned).toHaveBeenCalledTimes(2)
})
