import { resolve } from 'node:path'
import { WeirError } from '@weir/core/errors.ts'
import { version } from '@weir/runtime/version.ts'
import { Command, Option } from 'commander'
import { openCommandContext, reportFailure } from './command-context.ts'
import { addLoadCommand } from './commands/add-load.ts'
import { addTailCommand } from './commands/add-tail.ts'
import { addUsageCommands } from './commands/add-usage.ts'
import type { ImportFormat } from './commands/import.ts'
import { offsetOrClickhouse, wholeNumber } from './option-values.ts'
import { inProject } from './project.ts'
import { refuseRetired } from './retired.ts'
import { dataDirOfUp, ownDataDir } from './running-up.ts'

/** Ingress processes on one machine; more than this is a mistake. */
const ingressMax = 64

const context = openCommandContext(process.env, (exitCode) => process.exit(exitCode))

/** The exit code of a command that could not do its work. */
let exitCodeOfTrouble = 1
/** Whether it was a signal that the command was waiting for, as `up` does. */
let hasStoppedInOrder = false
/** The words that call a command: `keys list`. */
const nameOf = (command: Command): string =>
  command.parent?.parent ? `${nameOf(command.parent)} ${command.name()}` : command.name()

/** Ends a command whose answer is no with this exit code. */
const exitUnless = (isYes: boolean, exitCode = 1) => {
  if (!isYes) process.exitCode = exitCode
}

const inCwd = (path: string) => resolve(context.cwd, path)

// Each command is loaded when it is called: none waits for the libraries of the others.
const program = new Command('weir')
  .description('Decides, records, meters and alerts on API usage.')
  .version(version)
  .showHelpAfterError('(./weir help tells what there is)')
  // The subcommands inherit it. What it throws has the exit code of what is mistyped.
  .exitOverride()
  .hook('preAction', (_, command) => {
    if (command.opts().json !== true) context.beginProgress(nameOf(command))
  })
  // An option behind `usage export` is of that, not of `usage`.
  .enablePositionalOptions()
  .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'weir: ')) })

const services = ['ingress', 'metering', 'alerting', 'console']

const file = (flags: string, about: string) => new Option(flags, about).argParser(inCwd)
const policyOption = () => file('--policy <file>', 'the policy').default(inProject('weir.yaml'))
const policyInForceOption = () => file('--policy <file>', "the policy; the console's if none is named")
const dataOption = () => file('--data <dir>', 'where data, logs and keys are kept').default(ownDataDir)
/** Of a command that asks: the `weir up` that runs, wherever it keeps its data. */
const askedDataOption = () =>
  file('--data <dir>', 'the data directory of a weir up').default(dataDirOfUp(), 'that of the weir up that runs')

/** Options of every command that looks at what a `weir up` runs, or at servers that the environment names. */
const common = (command: Command) => command.addOption(askedDataOption()).option('--json', 'print JSON', false)

program
  .command('up')
  .description('Start everything on this machine and keep it running.')
  .addOption(policyOption())
  .addOption(dataOption())
  .addOption(new Option('--ports <mode>', 'fixed ports, or free ones').choices(['fixed', 'auto']).default('fixed'))
  .option('--ingress <n>', 'number of ingress processes', wholeNumber(1, ingressMax), 1)
  .option('--json', 'print one line of JSON when all is ready', false)
  .option('--watch', 'restart a service when its sources change', false)
  .option('--timings', 'say what the start spent its time on', false)
  .action(async (options) => {
    await (await import('./commands/up.ts')).up(options, context)
    hasStoppedInOrder = true
  })

program
  .command('version')
  .description('Say which version of Weir, and of Node, this is.')
  .option('--json', 'print JSON', false)
  .action(({ json }: { readonly json: boolean }) => {
    const [node, line] = [process.version, `weir ${version} on Node ${process.version}`]
    process.stdout.write(`${json ? JSON.stringify({ version, node }) : line}\n`)
  })

program
  .command('check')
  .description('Try the policy and the environment without starting anything.')
  .addOption(policyOption())
  .addOption(new Option('--service <name>', 'the environment is that of this service alone').choices(services))
  .option('--json', 'print {ok, problems}', false)
  .action(async (options) => exitUnless((await import('./commands/check.ts')).check(options, context).ok, 2))

const importCommand = program
  .command('import')
  .description("Convert another program's limits to a policy, and say what cannot be carried over.")
const importable = {
  envoy: 'configuration files of envoyproxy/ratelimit, or a ConfigMap with them',
  nginx: "limit_req and its zones in nginx's files, or in the output of nginx -T",
  kong: "rate-limiting and rate-limiting-advanced in Kong's declarative files, such as kong.yml",
  traefik: "rateLimit in Traefik's dynamic files, or Middlewares and routes of Kubernetes",
} satisfies Record<ImportFormat, string>
for (const format of Object.keys(importable) as ImportFormat[]) {
  importCommand
    .command(format)
    .description(`Convert ${importable[format]}; what they become is printed.`)
    .argument('<file...>')
    .option('--shadow', 'make limits that count and report, and refuse nothing', false)
    .option('--json', 'print {policy, notes}', false)
    .action(async (files: string[], options) => {
      const { importFrom } = await import('./commands/import.ts')
      exitCodeOfTrouble = 2
      exitUnless(importFrom(format, files.map(inCwd), options, context).isWhole)
    })
}

/** Commands about limits ask the Redis of WEIR_REDIS_URL, else that of the `weir up` on the data directory. */
const aboutLimits = (command: Command) =>
  common(command)
    .requiredOption('--subject <id>', 'whose limits')
    .option('--key-id <id>', 'for limits counted by key: the id of the key')
    .option('--ip <address>', 'for limits counted by address')
    .addOption(policyInForceOption())

aboutLimits(program.command('explain'))
  .description('Say which limits a request meets, why, and how they stand.')
  .requiredOption('--route <request>', 'method and path, such as "POST /v1/search"')
  .action(async (options) => (await import('./commands/limits.ts')).explain(options, context))

const limits = program.command('limits').description('Look at the limits of a subject, or reset them.')
const limitsCommand = (name: string, what: string) =>
  aboutLimits(limits.command(name))
    .description(what)
    .option('--route <request>', 'only what counts for this request: method and path')
    .option('--limit <name>', 'only this limit')
limitsCommand('peek', 'Show how its limits stand.').action(async (options) =>
  (await import('./commands/limits.ts')).peekLimits(options, context),
)
limitsCommand('reset', 'Forget what was counted, and lift blocks.').action(async (options) =>
  (await import('./commands/limits.ts')).changeCounts('reset', options, context),
)
limitsCommand('unblock', 'Lift blocks; what was counted stays.').action(async (options) =>
  (await import('./commands/limits.ts')).changeCounts('unblock', options, context),
)

/**
 * Commands about the policy in force ask the console of WEIR_CONSOLE_URL, else of the `weir up` on the data directory.
 */
const withFile = (command: Command) =>
  common(command).addOption(policyOption().default(process.env.WEIR_POLICY_FILE || inProject('weir.yaml')))

withFile(program.command('apply'))
  .description('Put a policy file in force. What the admin API has made stays.')
  .option('--dry-run', 'only say what would change', false)
  .option('--if-changed', 'only if it is not the file that was applied last', false)
  .option('--yes', 'delete without asking', false)
  .action(async (options) => (await import('./commands/policy.ts')).applyPolicy(options, context))

withFile(program.command('diff'))
  .description('Say what applying a policy file would change: exit code 0 for nothing, 1 for something, 2 for trouble.')
  .option('--impact', 'and which requests of the last 7 days it would have refused', false)
  .option('--subject <id>', 'with --impact: of this subject alone')
  .option('--top <n>', 'with --impact: of the subjects with the most decisions, up to 100; 20 if not given')
  .option('--from <time>', 'with --impact: since then instead, such as now-24h')
  .action(async (options) => {
    exitCodeOfTrouble = 2
    exitUnless(!(await (await import('./commands/policy.ts')).diffPolicy(options, context)).differs)
  })

common(program.command('export'))
  .description('Print the policy in force, as a file that says the same.')
  .action(async (options) => (await import('./commands/policy.ts')).exportPolicy(options, context))

const keys = program.command('keys').description('Make, exchange and end the keys of subjects.')
common(keys.command('create'))
  .description('Make a key. It is shown this once.')
  .argument('<subject>')
  .option('--id <id>', 'what records name it by')
  .option('--expires <time>', 'when it ends, such as 2030-01-31T00:00:00Z')
  .action(async (subject: string, options) => (await import('./commands/keys.ts')).createKey(subject, options, context))
common(keys.command('rotate'))
  .description('Make a key in place of another, which goes on for a while.')
  .argument('<id>')
  .option('--overlap <duration>', 'how long the old key goes on; 0s for not at all', '24h')
  .option('--new-id <id>', 'what records name the new one by')
  .option('--expires <time>', 'when the new one ends')
  .action(async (id: string, options) => (await import('./commands/keys.ts')).rotateKey(id, options, context))
common(keys.command('revoke'))
  .description('End a key: it is refused everywhere within a second.')
  .argument('<id>')
  .action(async (id: string, options) => (await import('./commands/keys.ts')).revokeKey(id, options, context))
common(keys.command('list').alias('ls'))
  .description('List keys; never the keys themselves.')
  .option('--subject <id>', 'only its keys')
  .action(async (options) => (await import('./commands/keys.ts')).listKeys(options, context))

const parts = { program, common, context, file, exitUnless }
addUsageCommands(parts)
addTailCommand(parts)
addLoadCommand(parts)

common(program.command('status'))
  .description('Say whether anything is wrong now; exit code 1 if so.')
  .action(async (options) => exitUnless(await (await import('./commands/status.ts')).showStatus(options, context)))

common(program.command('changes'))
  .description('List who changed what in the policy and in counts, newest first; or show one change.')
  .option('--limit <n>', 'at most', wholeNumber(1, 1_000), 20)
  .option('--after <id>', 'only what is older than this change')
  .argument('[id]', 'only this change, before and after')
  .action(async (id: string | undefined, options) => {
    const { listChanges, showChange } = await import('./commands/changes.ts')
    await (id === undefined ? listChanges(options, context) : showChange(id, options, context))
  })

common(program.command('audit'))
  .description(
    'Compare raw rows with rollups, numbers, Kafka and Redis: exit code 0 for equal, 1 for not, 2 for trouble.',
  )
  .option('--from <time>', 'since when, such as 2030-01-31T00:00:00Z; a day ago if not given')
  .option('--to <time>', 'until when')
  .option('--repair', 'repair what differs', false)
  .addOption(policyInForceOption())
  .action(async (options) => {
    exitCodeOfTrouble = 2
    exitUnless((await (await import('./commands/audit.ts')).audit(options, context)).isClean)
  })

const dlq = program.command('dlq').description('Look at records that could not be read, and bring them back.')
const dlqCommand = (name: string, what: string) =>
  common(dlq.command(name))
    .description(what)
    .option('--topic <name>', 'that the record was on; weir.decisions.v1 if none is named, with ls all')
const ofOneLetter = (command: Command) =>
  command
    .requiredOption('--partition <n>', 'that it was in', wholeNumber(0, 65_535))
    .requiredOption('--offset <n>', 'that it had', wholeNumber(0, Number.MAX_SAFE_INTEGER))
dlqCommand('ls', 'List them, with the reasons.')
  .alias('list')
  .action(async (options) => (await import('./commands/dlq.ts')).listDeadLetters(options, context))
ofOneLetter(dlqCommand('show', 'Print one as it came.')).action(async (options) =>
  (await import('./commands/dlq.ts')).showDeadLetter(options, context),
)
ofOneLetter(dlqCommand('replay', 'Bring one back as a record, which counts once.'))
  .addOption(file('--value <file>', 'the corrected record to bring back instead'))
  .action(async (options) => (await import('./commands/dlq.ts')).replayDeadLetter(options, context))

const alerts = program.command('alerts').description('Look at alerts and their deliveries, and deliver them again.')
const ofAlerts = (command: Command) =>
  command
    .option('--subject <id>', 'whose')
    .option('--type <type>', 'such as weir.quota.reached')
    .option('--endpoint <name>', 'only deliveries to it')
    .option('--from <time>', 'since when, such as now-24h or 2030-01-31; a week ago if not given')
    .option('--to <time>', 'until when')
ofAlerts(common(alerts.command('ls').alias('list')))
  .description('List alerts, newest first, with the last outcome at each endpoint.')
  .option('--outcome <outcome...>', 'only those whose delivery somewhere is failed, given_up, dropped, delivered, …')
  .option('--limit <n>', 'at most', wholeNumber(1, 1_000), 50)
  .action(async (options) => (await import('./commands/alerts.ts')).listAlerts(options, context))
common(alerts.command('show'))
  .description('Show an alert with every attempt to deliver it.')
  .argument('<id>')
  .action(async (id: string, options) => (await import('./commands/alerts.ts')).showAlert(id, options, context))
ofAlerts(common(alerts.command('redeliver')))
  .description('Deliver an alert once more; without one all since --from that was given up or dropped.')
  .argument('[id]')
  .action(async (id: string | undefined, options) => {
    if (id === undefined && options.from === undefined)
      throw new WeirError('COMMAND_INVALID', 'Which? Name an alert, or a time with --from.')
    await (await import('./commands/alerts.ts')).redeliver(id, options, context)
  })
common(alerts.command('test-endpoint'))
  .description(
    'Send an endpoint a test: exit code 1 if it does not take it. One that was disabled and takes it is enabled.',
  )
  .argument('<name>')
  .option('--subject <id>', 'whose contact, at an endpoint of type subject')
  .action(async (name: string, options) =>
    exitUnless(await (await import('./commands/alerts.ts')).testEndpoint(name, options, context)),
  )

const endpoints = program.command('endpoints').description('Look at endpoints of alerts.')
common(endpoints.command('secret'))
  .description('Show the secret that signs the webhooks of an endpoint without secretEnv.')
  .argument('<name>')
  .action(async (name: string, options) => (await import('./commands/alerts.ts')).showSecret(name, options, context))

const blocks = program.command('blocks').description('List which callers are blocked now, block one, or lift a block.')
common(blocks.command('list', { isDefault: true }).alias('ls'))
  .description('List blocks, those that were set last first.')
  .option('--limit <name>', 'only blocks of this limit')
  .option('--subject <id>', 'only blocks of this subject; ip:ADDRESS for an anonymous caller')
  .option('--ip <address>', 'only blocks of this address')
  .action(async (options) => (await import('./commands/blocks.ts')).listBlocks(options, context))
common(blocks.command('add'))
  .description('Block a subject, a key or an address for a while, or exempt an address; prints the id of the block.')
  .option('--subject <id>', 'the subject')
  .option('--key <id>', 'or the key, by its id')
  .option('--ip <address>', 'or the address, or a network such as 198.51.100.0/24')
  .option('--exempt', 'no block of the address and no limit by address applies', false)
  .requiredOption('--for <duration>', 'how long: 1m to 366d')
  .option('--reason <text>', 'why, for the others who read the list')
  .action(async (options) => (await import('./commands/blocks.ts')).addBlock(options, context))
common(blocks.command('lift'))
  .description('Lift a block; what was counted stays.')
  .argument('<id>', 'as in the list')
  .option('--forget', 'forget what was counted, too', false)
  .action(async (id: string, options) => (await import('./commands/blocks.ts')).liftBlock(id, options, context))

const silences = program.command('silences').description('Keep alerts from every endpoint for a while.')
common(silences.command('add'))
  .description('Make a silence for alerts that meet every condition; prints its name.')
  .requiredOption('--for <duration>', 'how long: 1m to 30d')
  .option('--subject <id...>', 'only alerts about these subjects')
  .option('--limit <name...>', 'only alerts about these limits')
  .option('--type <type...>', 'only alerts of these types, such as weir.quota.reached')
  .option('--from <time>', 'since when, such as 2030-01-31T00:00:00Z; from now on if not given')
  .option('--reason <text>', 'why, for the others who read the list')
  .action(async (options) => (await import('./commands/silences.ts')).addSilence(options, context))
common(silences.command('end'))
  .description('End a silence: alerts from now on are sent.')
  .argument('<name>')
  .action(async (name: string, options) => (await import('./commands/silences.ts')).endSilence(name, options, context))
common(silences.command('list').alias('ls'))
  .description('List silences, and those that ended within five days.')
  .action(async (options) => (await import('./commands/silences.ts')).listSilences(options, context))

common(program.command('restore-quotas'))
  .description('Raise calendar quotas in Redis to what ClickHouse shows as used. The console does it by itself.')
  .addOption(policyInForceOption())
  .action(async (options) => (await import('./commands/restore-quotas.ts')).restoreQuotas(options, context))

/** Commands about journals look into WEIR_JOURNAL_DIR, else into that of the `weir up` on the data directory. */
const journal = program
  .command('journal')
  .description('Look at the journals: records on disk that are not in Kafka yet.')
const journalCommand = (name: string, what: string) =>
  common(journal.command(name)).description(what).addOption(file('--dir <dir>', 'the folder of journals'))
journalCommand('ls', 'List journals: whose they are, and what in them waits.')
  .alias('list')
  .action(async (options) => (await import('./commands/journal.ts')).listJournals(options, context))
journalCommand('verify', 'Read all of them: exit code 1 if something is damaged or missing.').action(async (options) =>
  exitUnless(await (await import('./commands/journal.ts')).verifyJournals(options, context)),
)
journalCommand('drain', 'Send the journals of dead processes to Kafka; exit code 1 if some are left.')
  .option('--wait <seconds>', 'at most', wholeNumber(1, 86_400), 60)
  .action(async (options) => exitUnless(await (await import('./commands/journal.ts')).drainJournals(options, context)))

const metering = program.command('metering').description('Move the offset from which metering reads.')
metering
  .command('seek')
  .description(
    'Move the offset of a partition while metering is stopped. Rows that exist already are not counted again.',
  )
  .requiredOption('--partition <p>', 'which partition', wholeNumber(0, 65_535))
  .requiredOption(
    '--to <offset>',
    'an offset of Kafka, or clickhouse: after the last that ClickHouse has',
    offsetOrClickhouse,
  )
  .option('--outcomes', 'of weir.outcomes.v1, not of weir.decisions.v1', false)
  .action(async (options) => {
    const { findClickhouse, kafkaFrom } = await import('./find-servers.ts')
    const servers = { kafka: kafkaFrom(process.env, 'weir-seek'), clickhouse: findClickhouse(context.environment) }
    await (await import('./commands/metering.ts')).seekMetering(options, servers, context.print)
  })

program
  .command('topics')
  .description('Create the topics in the Kafka of WEIR_KAFKA_BROKERS.')
  .action(async () => {
    const { createTopics } = await import('./commands/topics.ts')
    const { kafkaFrom } = await import('./find-servers.ts')
    await createTopics(kafkaFrom(process.env, 'weir-topics'), context.report)
  })

program
  .command('migrate')
  .description('Bring the tables of WEIR_CLICKHOUSE_URL up to date.')
  .action(async () => {
    const { applyMigrations } = await import('./commands/migrate.ts')
    const { findClickhouse } = await import('./find-servers.ts')
    await applyMigrations(findClickhouse(context.environment), context.report, context.progress)
  })

try {
  refuseRetired(process.argv.slice(2))
  if (process.argv.length > 2) await program.parseAsync()
  else {
    const { showOverview } = await import('./commands/overview.ts')
    exitUnless(await showOverview(dataDirOfUp(), context))
  }
  const exitCode = hasStoppedInOrder ? undefined : context.exitCodeOfStop()
  if (exitCode !== undefined) process.exitCode = exitCode
} catch (error) {
  process.exitCode = reportFailure(error, context, exitCodeOfTrouble)
}
// Nothing that a command opened may keep the process; what it had to wait for, it has waited for.
process.exit()
