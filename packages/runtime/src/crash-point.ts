/**
 * Ends this process as `kill -9` would, at the step that `WEIR_CRASH_AT` names as `service.step`, or `service.step:N`
 * for the N-th time it is passed. Does nothing where the variable names another step. For the tests that kill at every
 * numbered step of an order of effects; main.ts passes the variable's value.
 */
export type CrashPoint = (step: string) => void

/** A crash point that never ends the process. */
export const noCrash: CrashPoint = () => undefined

/** Returns the crash points of a service. */
export function createCrashPoint(service: string, crashAt: string | undefined): CrashPoint {
  const [name, times = '1'] = (crashAt ?? '').split(':')
  if (name === undefined || !name.startsWith(`${service}.`)) return noCrash
  let left = Number(times)
  return (step) => {
    if (name !== `${service}.${step}`) return
    left -= 1
    if (left === 0) process.kill(process.pid, 'SIGKILL')
  }
}
