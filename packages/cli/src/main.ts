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
import { dataDirOfUp, ownDataDir, policyOfUp } from './running-up.ts'

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
  .description('Limits, records and meters API usage, and sends alerts.')
  .version(version)
  .showHelpAfterError('(./weir help lists the commands)')
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
const policyOption = () => file('--policy <file>', 'the policy').default(inProject('weir.yaml'), 'weir.yaml')
/** Of a command that looks at an edited file: the one that the `weir up` that runs was started with. */
const policyOfThisUp = process.env.WEIR_CONSOLE_URL ? undefined : policyOfUp()
const editedPolicy = process.env.WEIR_POLICY_FILE || (policyOfThisUp ?? inProject('weir.yaml'))
const editedPolicyOption = () => policyOption().default(editedPolicy, 'that of the weir up that runs, or weir.yaml')
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
  .addOption(new Option('--ports <mode>', 'use the default or free ports').choices(['fixed', 'auto']).default('fixed'))
  .option('--ingress <n>', 'number of ingress processes', wholeNumber(1, ingressMax), 1)
  .option('--json', 'print one line of JSON when everything is ready', false)
  .option('--watch', 'restart a service when its sources change', false)
  .option('--timings', 'print how long each startup step took', false)
  .action(async (options) => {
    await (await import('./commands/up.ts')).up(options, context)
    hasStoppedInOrder = true
  })

program
  .command('version')
  .description('Show the versions of Weir and Node.')
  .option('--json', 'print JSON', false)
  .action(({ json }: { readonly json: boolean }) => {
    const [node, line] = [process.version, `weir ${version} on Node ${process.version}`]
    process.stdout.write(`${json ? JSON.stringify({ version, node }) : line}\n`)
  })

program
  .command('check')
  .description('Check the policy and the environment without starting anything.')
  .addOption(editedPolicyOption())
  .addOption(new Option('--service <name>', 'check the environment for this service only').choices(services))
  .option('--json', 'print {ok, problems}', false)
  .action(async (options) => exitUnless((await import('./commands/check.ts')).check(options, context).ok, 2))

const importCommand = program
  .command('import')
  .description("Convert another product's limits to a policy, and list settings that have no equivalent.")
const importable = {
  envoy: 'configuration files of envoyproxy/ratelimit, or a ConfigMap with them',
  nginx: "limit_req and its zones in nginx's files, or in the output of nginx -T",
  kong: "rate-limiting and rate-limiting-advanced in Kong's declarative files, such as kong.yml",
  traefik: "rateLimit in Traefik's dynamic files, or Middlewares and routes of Kubernetes",
} satisfies Record<ImportFormat, string>
for (const format of Object.keys(importable) as ImportFormat[]) {
  importCommand
    .command(format)
    .description(`Convert ${importable[format]}, and print the policy.`)
    .argument('<file...>')
    .option('--shadow', 'create limits in shadow mode: they count and report, but allow all requests', false)
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
    .requiredOption('--subject <id>', 'the subject')
    .option('--key-id <id>', 'key id, for limits that count per key')
    .option('--ip <address>', 'IP address, for limits that count per address')
    .addOption(policyInForceOption())

aboutLimits(program.command('explain'))
  .description('Show which limits apply to a request, why, and how much of each is left.')
  .requiredOption('--route <request>', 'method and path, such as "POST /v1/search"')
  .action(async (options) => (await import('./commands/limits.ts')).explain(options, context))

const limits = program.command('limits').description('Show or reset the limits of a subject.')
const limitsCommand = (name: string, what: string) =>
  aboutLimits(limits.command(name))
    .description(what)
    .option('--route <request>', 'only limits that apply to this method and path')
    .option('--limit <name>', 'only this limit')
limitsCommand('peek', 'Show used and remaining units per limit.').action(async (options) =>
  (await import('./commands/limits.ts')).peekLimits(options, context),
)
limitsCommand('reset', 'Reset counts and lift blocks.').action(async (options) =>
  (await import('./commands/limits.ts')).changeCounts('reset', options, context),
)
limitsCommand('unblock', 'Lift blocks and keep the counts.').action(async (options) =>
  (await import('./commands/limits.ts')).changeCounts('unblock', options, context),
)

/**
 * Commands about the policy in force ask the console of WEIR_CONSOLE_URL, else of the `weir up` on the data directory.
 */
const withFile = (command: Command) => common(command).addOption(editedPolicyOption())

withFile(program.command('apply'))
  .description('Apply a policy file. Anything created through the admin API is kept.')
  .option('--dry-run', 'show the plan and change nothing', false)
  .option('--if-changed', 'do nothing if this file was the last one applied', false)
  .option('--yes', 'delete without asking', false)
  .action(async (options) => (await import('./commands/policy.ts')).applyPolicy(options, context))

withFile(program.command('diff'))
  .description('Show what a policy file would change. Exit code 0: no changes, 1: changes, 2: error.')
  .option('--impact', 'replay the requests from the last 7 days', false)
  .option('--subject <id>', 'with --impact: only this subject')
  .option('--top <n>', 'with --impact: the N busiest subjects, up to 100 (default: 20)')
  .option('--from <time>', 'with --impact: start of the replay, such as now-24h')
  .action(async (options) => {
    exitCodeOfTrouble = 2
    exitUnless(!(await (await import('./commands/policy.ts')).diffPolicy(options, context)).differs)
  })

common(program.command('export'))
  .description('Print the policy in force as a policy file.')
  .action(async (options) => (await import('./commands/policy.ts')).exportPolicy(options, context))

const keys = program.command('keys').description('Create, rotate, revoke and list API keys.')
common(keys.command('create'))
  .description('Create a key. It is shown only once.')
  .argument('<subject>')
  .option('--id <id>', 'id of the key, as shown in records')
  .option('--expires <time>', 'expiry, such as 2030-01-31T00:00:00Z')
  .action(async (subject: string, options) => (await import('./commands/keys.ts')).createKey(subject, options, context))
common(keys.command('rotate'))
  .description('Replace a key. The old one stays valid for a while.')
  .argument('<id>')
  .option('--overlap <duration>', 'how long the old key stays valid; 0s revokes it immediately', '24h')
  .option('--new-id <id>', 'id of the new key, as shown in records')
  .option('--expires <time>', 'when the new key expires')
  .action(async (id: string, options) => (await import('./commands/keys.ts')).rotateKey(id, options, context))
common(keys.command('revoke'))
  .description('Revoke a key everywhere within a second.')
  .argument('<id>')
  .action(async (id: string, options) => (await import('./commands/keys.ts')).revokeKey(id, options, context))
common(keys.command('list').alias('ls'))
  .description('List keys, without the secrets.')
  .option('--subject <id>', 'only keys of this subject')
  .action(async (options) => (await import('./commands/keys.ts')).listKeys(options, context))

const parts = { program, common, context, file, exitUnless }
addUsageCommands(parts)
addTailCommand(parts)
addLoadCommand(parts)

common(program.command('status'))
  .description('Show the health of every component. Exit code 1 if something is wrong.')
  .action(async (options) => exitUnless(await (await import('./commands/status.ts')).showStatus(options, context)))

common(program.command('changes'))
  .description('List changes to the policy and to counts, newest first, or show one change.')
  .option('--limit <n>', 'most rows', wholeNumber(1, 1_000), 20)
  .option('--after <id>', 'only changes before this one')
  .argument('[id]', 'show the values before and after this change')
  .action(async (id: string | undefined, options) => {
    const { listChanges, showChange } = await import('./commands/changes.ts')
    await (id === undefined ? listChanges(options, context) : showChange(id, options, context))
  })

common(program.command('audit'))
  .description(
    'Compare raw rows with rollups, numbers, Kafka and Redis: exit code 0 for equal, 1 for not, 2 for trouble.',
  )
  .option('--from <time>', 'start, such as 2030-01-31T00:00:00Z (default: a day ago)')
  .option('--to <time>', 'end')
  .option('--repair', 'repair what differs', false)
  .addOption(policyInForceOption())
  .action(async (options) => {
    exitCodeOfTrouble = 2
    exitUnless((await (await import('./commands/audit.ts')).audit(options, context)).isClean)
  })

const dlq = program.command('dlq').description('List, show and replay records that could not be read.')
const dlqCommand = (name: string, what: string) =>
  common(dlq.command(name))
    .description(what)
    .option('--topic <name>', 'topic of the record (default: weir.decisions.v1; for ls: all topics)')
const ofOneLetter = (command: Command) =>
  command
    .requiredOption('--partition <n>', 'its partition', wholeNumber(0, 65_535))
    .requiredOption('--offset <n>', 'its offset', wholeNumber(0, Number.MAX_SAFE_INTEGER))
dlqCommand('ls', 'List them with the reasons.')
  .alias('list')
  .action(async (options) => (await import('./commands/dlq.ts')).listDeadLetters(options, context))
ofOneLetter(dlqCommand('show', 'Print one as received.')).action(async (options) =>
  (await import('./commands/dlq.ts')).showDeadLetter(options, context),
)
ofOneLetter(dlqCommand('replay', 'Replay one. It is counted once.'))
  .addOption(file('--value <file>', 'replay this corrected record instead'))
  .action(async (options) => (await import('./commands/dlq.ts')).replayDeadLetter(options, context))

const alerts = program.command('alerts').description('List, show and redeliver alerts.')
const ofAlerts = (command: Command) =>
  command
    .option('--subject <id>', 'whose')
    .option('--type <type>', 'type, such as weir.quota.reached')
    .option('--endpoint <name>', 'only deliveries to this endpoint')
    .option('--from <time>', 'start, such as now-24h or 2030-01-31 (default: a week ago)')
    .option('--to <time>', 'end')
ofAlerts(common(alerts.command('ls').alias('list')))
  .description('List alerts, newest first, with their deliveries.')
  .option('--outcome <outcome...>', 'only deliveries in this state: failed, given_up, dropped, delivered, …')
  .option('--limit <n>', 'most rows', wholeNumber(1, 1_000), 50)
  .action(async (options) => (await import('./commands/alerts.ts')).listAlerts(options, context))
common(alerts.command('show'))
  .description('Show an alert with every delivery attempt.')
  .argument('<id>')
  .action(async (id: string, options) => (await import('./commands/alerts.ts')).showAlert(id, options, context))
ofAlerts(common(alerts.command('redeliver')))
  .description('Redeliver an alert, or all alerts that were given up or dropped since --from.')
  .argument('[id]')
  .action(async (id: string | undefined, options) => {
    if (id === undefined && options.from === undefined)
      throw new WeirError('COMMAND_INVALID', 'Name an alert, or a time with --from.')
    await (await import('./commands/alerts.ts')).redeliver(id, options, context)
  })
common(alerts.command('test-endpoint'))
  .description(
    'Send a test alert. Exit code 1 if the endpoint rejects it; a disabled endpoint that accepts it is enabled.',
  )
  .argument('<name>')
  .option('--subject <id>', 'for an endpoint of type subject: the subject to contact')
  .action(async (name: string, options) =>
    exitUnless(await (await import('./commands/alerts.ts')).testEndpoint(name, options, context)),
  )

common(program.command('endpoints').description('Show secrets for alert endpoints.').command('secret'))
  .description('Show the signing secret for an endpoint without secretEnv.')
  .argument('<name>')
  .action(async (name: string, options) => (await import('./commands/alerts.ts')).showSecret(name, options, context))

const blocks = program.command('blocks').description('List blocked callers, block one, or lift a block.')
common(blocks.command('list', { isDefault: true }).alias('ls'))
  .description('List blocks, newest first.')
  .option('--limit <name>', 'only blocks set by this limit')
  .option('--subject <id>', 'only blocks on this subject; ip:ADDRESS for an anonymous caller')
  .option('--ip <address>', 'only blocks on this address')
  .action(async (options) => (await import('./commands/blocks.ts')).listBlocks(options, context))
common(blocks.command('add'))
  .description('Block a subject, a key or an address, or exempt an address. Prints the id of the block.')
  .option('--subject <id>', 'the subject')
  .option('--key <id>', 'block this key id instead')
  .option('--ip <address>', 'block this address or network instead, such as 198.51.100.0/24')
  .option('--exempt', 'exempt the address from blocks and from limits that count per address', false)
  .requiredOption('--for <duration>', 'how long: 1m to 366d')
  .option('--reason <text>', 'a note for your team')
  .action(async (options) => (await import('./commands/blocks.ts')).addBlock(options, context))
common(blocks.command('lift'))
  .description('Lift a block and keep the counts.')
  .argument('<id>', 'from the list')
  .option('--forget', 'reset the counts, too', false)
  .action(async (id: string, options) => (await import('./commands/blocks.ts')).liftBlock(id, options, context))

const silences = program.command('silences').description('Silence alerts for a while.')
common(silences.command('add'))
  .description('Create a silence for alerts that match every condition. Prints its name.')
  .requiredOption('--for <duration>', 'how long: 1m to 30d')
  .option('--subject <id...>', 'only alerts about these subjects')
  .option('--limit <name...>', 'only alerts about these limits')
  .option('--type <type...>', 'only alerts of these types, such as weir.quota.reached')
  .option('--from <time>', 'start, such as 2030-01-31T00:00:00Z (default: now)')
  .option('--reason <text>', 'a note for your team')
  .action(async (options) => (await import('./commands/silences.ts')).addSilence(options, context))
common(silences.command('end'))
  .description('End a silence. New alerts are sent again.')
  .argument('<name>')
  .action(async (name: string, options) => (await import('./commands/silences.ts')).endSilence(name, options, context))
common(silences.command('list').alias('ls'))
  .description('List silences, including those that ended in the last five days.')
  .action(async (options) => (await import('./commands/silences.ts')).listSilences(options, context))

common(program.command('restore-quotas'))
  .description('Raise calendar quotas in Redis to match usage in ClickHouse. The console does this automatically.')
  .addOption(policyInForceOption())
  .action(async (options) => (await import('./commands/restore-quotas.ts')).restoreQuotas(options, context))

/** Commands about journals look into WEIR_JOURNAL_DIR, else into that of the `weir up` on the data directory. */
const journal = program.command('journal').description('Inspect journals: records on disk that are not in Kafka yet.')
const journalCommand = (name: string, what: string) =>
  common(journal.command(name)).description(what).addOption(file('--dir <dir>', 'the folder of journals'))
journalCommand('ls', 'List journals, their owners and pending records.')
  .alias('list')
  .action(async (options) => (await import('./commands/journal.ts')).listJournals(options, context))
journalCommand('verify', 'Verify every journal. Exit code 1 if something is damaged or missing.').action(
  async (options) => exitUnless(await (await import('./commands/journal.ts')).verifyJournals(options, context)),
)
journalCommand('drain', 'Send journals of dead processes to Kafka. Exit code 1 if some are left.')
  .option('--wait <seconds>', 'longest wait', wholeNumber(1, 86_400), 60)
  .action(async (options) => exitUnless(await (await import('./commands/journal.ts')).drainJournals(options, context)))

const metering = program.command('metering').description('Move the offset that metering reads from.')
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
  .option('--outcomes', 'use weir.outcomes.v1 instead of weir.decisions.v1', false)
  .action(async (options) => {
    const { findClickhouse, kafkaFrom } = await import('./find-servers.ts')
    const servers = { kafka: kafkaFrom(process.env, 'weir-seek'), clickhouse: findClickhouse(context.environment) }
    await (await import('./commands/metering.ts')).seekMetering(options, servers, context.print)
  })

program
  .command('topics')
  .description('Create the topics in Kafka (WEIR_KAFKA_BROKERS).')
  .action(async () => {
    const { createTopics } = await import('./commands/topics.ts')
    const { kafkaFrom } = await import('./find-servers.ts')
    await createTopics(kafkaFrom(process.env, 'weir-topics'), context.report)
  })

program
  .command('migrate')
  .description('Migrate the tables in ClickHouse (WEIR_CLICKHOUSE_URL).')
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
