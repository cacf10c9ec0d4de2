import { parseDecision } from '@weir/contracts/decision.v1.ts'
import { expect, test } from 'vitest'
import { encodeCorrectionOpen, parseContext } from './correction-record.ts'

const older = { tsMs: 7, keyId: 'k', plan: 'free', route: 'GET /a', method: 'GET' }
const measured = { ...older, meter: 'chat', dims: { model: 'small', tag: 'a"b' } }
const decisionId = '019a9d3e-0000-7000-8000-000000000001'

function recordOf(context: typeof older, more: { readonly basis?: 'bound' } = {}) {
  const common = {
    decisionId,
    subject: 'acme',
    adjustment: 0,
    charged: 'yes',
    limits: [],
    units: { tokens: 4 },
  } as const
  const line = `${encodeCorrectionOpen({ ...common, ...more, context: parseContext(JSON.stringify(context)) })},"journal":"j","seq":0}`
  const parsed = parseDecision(Buffer.from(line))
  return { line, decision: parsed.kind === 'decision' ? parsed.decision : undefined }
}

test('A correction repeats the meter and the labels of its decision, and says how its units are known', () => {
  const { meter, dims } = measured
  expect(recordOf(measured).decision).toMatchObject({ meter, dims, basis: 'reported' })
  expect(recordOf(measured, { basis: 'bound' }).decision).toMatchObject({ units: { tokens: 4 }, basis: 'bound' })
})

test('A correction ends with the decision that it corrects and the adjustment, right before its numbers', () => {
  expect(recordOf(measured).line).toMatch(
    /"meter":"chat","dims":\{[^}]*\},"units":\{"tokens":4\},"basis":"reported","corrects":"[^"]+","adjustment":0,"journal":"j","seq":0\}$/,
  )
})

test('The context that an older process stored has neither meter nor labels, and is read as it is', () => {
  expect(parseContext(JSON.stringify(older))).toStrictEqual({ ...older, meter: '', dims: {} })
  expect(parseContext(JSON.stringify(measured))).toStrictEqual(measured)
  expect(recordOf(older).line).not.toMatch(/"meter"|"dims"/)
})

test.each([{ meter: 7 }, { dims: { model: 7 } }])('A stored context with %j is refused', (wrong) => {
  expect(() => parseContext(JSON.stringify({ ...measured, ...wrong }))).toThrow('cannot be read')
})
