import type { DecisionLog } from '@weir/decide/ports.ts'
import { createDecisionLines } from '@weir/decide/record/decision-lines.ts'
import { createBusyLogger } from '@weir/runtime/logger.ts'
import type { Config } from '@weir/runtime/read-config.ts'
import type { Service } from '@weir/runtime/start-service.ts'
import type { ingressVariables } from './config.ts'

/** What a second of lines leaves behind a reader that stands still: 1,000 of a kilobyte. */
const unreadBytesMax = 1024 ** 2

/** Writes the records of a log as lines, too, where the configuration wants that; else it is the log as it was. */
export async function logDecisions(
  log: DecisionLog,
  { logDecisions: which }: Pick<Config<typeof ingressVariables>, 'logDecisions'>,
  run: Service['run'],
): Promise<DecisionLog> {
  if (which === 'off') return log
  const lines = await run.own('lines of decisions', createBusyLogger('ingress', unreadBytesMax), (one) => one.close())
  const written = { log: lines.log, dropped: () => lines.dropped }
  return run.own('decisions', createDecisionLines(log, which, written), (decisions) => decisions.close())
}
