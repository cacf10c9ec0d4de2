import { METHODS } from 'node:http'
import { descriptorMethod } from '@weir/policy/match/match-descriptor.ts'

/** The methods that HTTP has, as Node lists them. */
const methods: ReadonlySet<string> = new Set(METHODS)

/** Whether HTTP has this method. */
export const isMethod = (method: string): boolean => methods.has(method)

/**
 * The method as records, usage and limits by method have it; empty where a check names none. Clients can make up any
 * number of methods, and usage has a row for each of them: all that HTTP does not have are one.
 */
export const recordedMethod = (method: string): string => (method === '' || methods.has(method) ? method : 'OTHER')

/**
 * The method that routes are matched by: as it came, except for the word for descriptors, which no request may have.
 */
export const matchedMethod = (method: string): string => (method === descriptorMethod ? '' : method)
