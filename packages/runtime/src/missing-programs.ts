import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { NeededProgram } from './native-server.ts'

function isOnPath(program: string, path: string): boolean {
  return path.split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

/** Which of these programs are in none of the folders of `path`, the value of the environment's PATH. */
export function missingPrograms(needs: readonly NeededProgram[], path = ''): NeededProgram[] {
  return needs.filter(({ program }) => !isOnPath(program, path))
}
