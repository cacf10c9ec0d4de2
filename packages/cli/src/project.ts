import { resolve } from 'node:path'

/** The checkout's root: the programs, migrations and topics that the commands start and apply lie below it. */
export const projectRoot = resolve(import.meta.dirname, '../../..')

/** Returns the path of a file of the checkout. */
export const inProject = (...path: string[]): string => resolve(projectRoot, ...path)
