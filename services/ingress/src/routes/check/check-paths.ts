/** The addresses of one check, and of many. */
export const checkPath = '/v1/check'
export const batchPath = '/v1/check/batch'
