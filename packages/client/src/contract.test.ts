import type { CheckBody, checkResult } from '@weir/api/check.ts'
import type { Of } from '@weir/api/schema.ts'
import { expectTypeOf, it } from 'vitest'
import type { CheckRequest } from './check-request.ts'
import type { CheckResult, Reason } from './check-result.ts'

/** `retry_after_ms` -> `retryAfterMs`. */
type Camel<Name> = Name extends `${infer Word}_${infer Rest}` ? `${Word}${Capitalize<Camel<Rest> & string>}` : Name
type Result = Of<typeof checkResult>

// These are held by the compiler: a difference fails the types of `npm run check`.
it('the client asks and answers what the contract of the check API says', () => {
  // A body is counted by where the request is: at the ingress.
  expectTypeOf<keyof CheckRequest>().toEqualTypeOf<Camel<Exclude<keyof CheckBody, 'body'>>>()
  expectTypeOf<keyof CheckResult>().toEqualTypeOf<Camel<keyof Result>>()
  expectTypeOf<Result['reason']>().toExtend<Reason>()
})
