import { runWeir } from '../weir-up.ts'
import type { Stack } from './stack.ts'

/** A command as a person calls it, with the addresses and rights of the stack's own servers and console. */
export const callWeir = ({ addresses, kafkaVariables, ports, secrets }: Stack, args: readonly string[]) =>
  runWeir(args, {
    WEIR_REDIS_URL: addresses.redis,
    WEIR_KAFKA_BROKERS: addresses.kafka,
    ...kafkaVariables,
    WEIR_CLICKHOUSE_URL: addresses.clickhouse,
    WEIR_CONSOLE_URL: `http://127.0.0.1:${ports.console}`,
    WEIR_ADMIN_TOKEN: secrets.adminToken,
  })

/** The same, of a command that has to succeed. */
export async function weirOn(stack: Stack, ...args: readonly string[]) {
  const { code, stdout, stderr } = await callWeir(stack, args)
  if (code !== 0) throw new Error(`weir ${args.join(' ')}: exit code ${code}: ${stderr}`)
  return { stdout, stderr }
}
