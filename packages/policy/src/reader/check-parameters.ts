import type { Limit } from '@weir/core/limits/limit.ts'
import { descriptorMethod } from '../match/match-descriptor.ts'
import { readParameter } from '../match/match-route.ts'
import type { Route } from '../policy.ts'
import type { PolicyReader, SourcePosition } from './policy-reader.ts'
import type { LimitNames, Limits } from './read-plans.ts'

/** A limit that counts by parameters of routes, with where it says so. */
export interface CountedParameters {
  readonly at: SourcePosition
  readonly parameters: readonly string[]
}

/** The parameters of routes that a limit counts by. */
export const parametersOf = (limit: Limit | undefined): readonly string[] =>
  limit?.by.flatMap((part) => (part.kind === 'path' ? [part.name] : [])) ?? []

const has = ({ method, path }: Pick<Route, 'method' | 'path'>, parameter: string) =>
  method !== descriptorMethod && path.split('/').some((segment) => readParameter(segment)?.name === parameter)

/**
 * Adds a problem for each limit of a route that counts by a parameter that the route does not have, and for each limit
 * of some plans whose requests have none.
 */
export function checkRouteLimits(
  reader: PolicyReader,
  route: Pick<Route, 'method' | 'path' | 'template'>,
  names: LimitNames,
  limits: Limits,
): void {
  for (const { value: name, at } of names) {
    if (route.method === descriptorMethod && limits.get(name)?.plans !== undefined) {
      reader.problem(at, 'applies only to some plans, but a descriptor has no subject and therefore no plan')
    }
    for (const parameter of parametersOf(limits.get(name))) {
      if (has(route, parameter)) continue
      reader.problem(at, `counts by path:${parameter}, but ${route.template} has no parameter :${parameter}`)
    }
  }
}

/** Adds a problem for each parameter that a limit counts by and no route has, as when its name is misspelt. */
export function checkCountedParameters(
  reader: PolicyReader,
  counted: readonly CountedParameters[],
  routes: readonly Route[],
): void {
  for (const { at, parameters } of counted) {
    for (const parameter of parameters) {
      if (routes.some((route) => has(route, parameter))) continue
      reader.problem(at, `counts by path:${parameter}, but no route has a parameter :${parameter}`)
    }
  }
}
