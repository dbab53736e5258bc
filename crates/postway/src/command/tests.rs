//! The command line as a whole: it is well-formed, and the documented forms parse.

use clap::CommandFactory as _;

use super::*;

fn parse(line: &str) -> Result<CommandLine, clap::Error> {
    CommandLine::try_parse_from(line.split_whitespace())
}

#[test]
fn the_command_line_is_well_formed() {
    CommandLine::command().debug_assert();
}

#[test]
fn no_command_means_serve() {
    assert!(parse("postway").unwrap().is_server());
    assert!(parse("postway serve --config x.toml").unwrap().is_server());
    assert!(!parse("postway stats").unwrap().is_server());
}

#[test]
fn the_documented_forms_parse() {
    for line in [
        "postway send --from a@example.com --to b@example.net --to c@example.net --subject x --text y --wait",
        "postway send --eml - --account relay-1 --to b@example.net --id m-1",
        "postway messages list --status failed --batch b --limit 5 --all --json",
        "postway --json messages show m-1",
        "postway messages resolve m-1 --outcome resend",
        "postway messages reschedule m-1 --send-at 1900000000",
        "postway send --eml a.eml --from bounces@example.com --to b@example.net --send-at 1900000000",
        "postway send --from a@example.com --to b@example.net --template welcome --var name=Ada --sensitive",
        "postway sink --listen 127.0.0.1:2526",
        "postway apply settings --dry-run --secrets --delete accounts,rules",
        "postway export settings --tenant acme",
        "postway messages list @gmail.com smtp_550 --outcome bounced --held-by any --watch",
        "postway messages list --waiting --subject order --error-code smtp_550",
        "postway messages retry m-1 m-2 m-3",
        "postway messages cancel -",
        "postway dev --smtp 2525 --http 8080 --data-dir ./mail --open",
        "postway restore /backup/monday --hold",
        "postway bulk cancel --batch spring --waiting --yes",
        "postway bulk retry smtp_451 --status failed --dry-run",
        "postway bulk resolve --held-by doubt --as resend --no-wait",
        "postway bulk reschedule --batch spring --send-at 1900000000",
        "postway bulk suppress --outcome bounced --note x --yes",
        "postway bulk stop 0192d3a4-5b6c-7d8e-9f01-23456789abcd",
        "postway messages resolve m-1 m-2 --outcome sent",
        "postway dead-letters list --account relay-1 --error-code smtp_450 --all",
        "postway dead-letters replay m-1 m-2",
        "postway dead-letters replay --all --account relay-1",
        "postway messages raw m-1",
        "postway messages payload m-1",
        "postway templates list --all",
        "postway templates show welcome --template-version 2",
        "postway templates versions welcome --limit 5",
        "postway templates create mails/",
        "postway templates preview welcome --var name=Ada --part html",
        "postway templates preview welcome --from mails/ --variables - --json",
        "postway templates preview welcome --locale de-AT",
        "postway templates send-test welcome --to a@example.com --to b@example.com --locale de --var name=Ada",
        "postway templates delete welcome",
        "postway views install --database postgres://owner@db/mail --schema legacy --index --print",
        "postway views remove --schema legacy",
        "postway moving check 000 --database mysql://r@db/outbox --payloads files --payloads-were /srv/files",
        "postway --json moving import 001 --database sqlite:///a.db --skip-wrong --suppress-hard-bounces --tenant-of a=b",
        "postway moving import 002 --database mysql://r@db/m --imap-host h --imap-host x.example=h2 --imap-port 143 --imap-tls none",
        "postway mailboxes create --host h --username u --start after:4711",
        "postway recipients list --external-id C-1",
        "postway recipients create ada@example.net --external-id C-1 --name Ada --personal-number 19800101-1234",
        "postway recipients show external:C-1",
        "postway recipients delete external:C-1",
        "postway dkim create example.com",
        "postway dkim create example.com --selector s1 --algorithm ed25519 --json",
        "postway dkim list --domain example.com",
        "postway dkim show example.com s1",
        "postway dkim suspend example.com s1",
        "postway dkim activate example.com s1",
        "postway dkim delete example.com s1",
        "postway archive list --since 2026-01-01T00:00:00Z --all",
        "postway archive show 0192d3a4-5b6c-7d8e-9f01-23456789abcd",
        "postway archive raw 0192d3a4-5b6c-7d8e-9f01-23456789abcd",
        "postway archive open copy.eml.sealed",
        "postway archive delete 0192d3a4-5b6c-7d8e-9f01-23456789abcd",
        "postway tenants update acme --archive-storage true --archive-encrypt true --archive-days 3650",
        "postway domains list --all",
        "postway domains check example.com",
        "postway domains delete example.com",
        "postway domains reports example.com --limit 5 --json",
        "postway domains summary example.com --days 90",
        "postway doctor domain example.com --spf include:amazonses.com --reports-to dmarc@example.com",
        "postway tenants update acme --large-files rewrite --large-files-above 5000000 --auto-submitted true",
        "postway accounts create relay-1 --host h --port 25 --tls none --username u --password-file -",
        "postway accounts create --json-file a.json",
        "postway accounts create sg-1 --kind sendgrid --api-key-file -",
        "postway accounts create mg-1 --kind mailgun --domain mg.example.com --base-url https://api.eu.mailgun.net",
        "postway accounts create pm-1 --kind postmark --message-stream broadcast",
        "postway accounts update relay-1 --max-connections 5",
        "postway accounts delete relay-1",
        "postway tenants list --all",
        "postway users create ada --role operator --for acme --for other --email ada@example.com",
        "postway users create root --role admin --all-tenants --no-invitation",
        "postway users update ada --disabled true --read-content false --all-tenants",
        "postway users list --all",
        "postway users sessions ada --end",
        "postway users invite ada",
        "postway users delete ada",
        "postway audit",
        "postway audit --export",
        "postway audit follow --after 7 --once",
        "postway audit verify lines.jsonl --head 7:ab",
        "postway tenants keys create acme --scope read --scope read:content",
        "postway tenants create acme --name Acme --weight 50 --retention-days 30",
        "postway tenants update acme --json-file - --default-account relay-1",
        "postway tenants delete acme --confirm acme",
        "postway tenants suspend acme",
        "postway tenants keys create acme --name shop --scope send --scope read --allow-ip 10.0.0.0/8",
        "postway tenants keys create acme --allow-sender *.example.com --allow-recipient test.example",
        "postway tenants keys list acme",
        "postway tenants keys delete acme k",
        "postway tenants update acme --report-retention-seconds 0 --unreported-retention-days 30",
        "postway tenants update acme --callback-form outbox",
        "postway webhooks list",
        "postway webhooks create https://app.example.com/hooks --event email.sent --event email.failed",
        "postway webhooks show wh_1",
        "postway webhooks update wh_1 --active true --target https://app.example.com/other",
        "postway webhooks rotate wh_1",
        "postway webhooks test wh_1 --json",
        "postway webhooks deliveries wh_1 --status dead --all",
        "postway webhooks resend wh_1 0192d3a4-5b6c-7d8e-9f01-23456789abcd 3",
        "postway webhooks resend wh_1 --since 2030-01-25T18:00:00Z --until 2030-01-28T09:00:00Z --dead",
        "postway webhooks resend client_sync --since 1893456000 --all",
        "postway webhooks delete wh_1",
        "postway mailboxes list",
        "postway mailboxes create --id bounces --host imap.example.com --username u --role bounces --role pec",
        "postway mailboxes create --host h --username u --password-file - --start newest:100 --tls starttls",
        "postway mailboxes update bounces --folder Bounces --poll-seconds 30",
        "postway mailboxes test bounces",
        "postway mailboxes suspend bounces",
        "postway mailboxes activate bounces",
        "postway mailboxes show bounces --json",
        "postway mailboxes delete bounces",
        "postway routes list",
        "postway routes create news --sender-domain *.example.com --priority low --to bulk-1=3 --to bulk-2",
        "postway routes update news --to bulk-1=0 --to bulk-2 --position -1 --active false",
        "postway routes update news --any",
        "postway routes order receipts news",
        "postway routes try --from shop@example.com --to ada@example.net --tag orders --stream news",
        "postway routes delete news",
        "postway rules list --mailbox support",
        "postway rules create rule.json --mailbox support --id orders",
        "postway rules update orders --position -1 --active false",
        "postway rules try orders --inbound 0192d3a4-5b6c-7d8e-9f01-23456789abcd",
        "postway rules try --rule rule.json --eml mail.eml",
        "postway rules delete orders",
        "postway hooks show sg",
        "postway hooks set ses --provider ses --topic arn:aws:sns:eu-west-1:1:a --topic arn:aws:sns:eu-west-1:1:b",
        "postway hooks set mg --secret-file -",
        "postway hooks rotate sg",
        "postway hooks events sg --status unmatched",
        "postway hooks delete sg",
        "postway streams history newsletter --by hour --since 2026-11-01T00:00:00Z",
        "postway streams list",
        "postway streams create newsletter --name Weekly --unsubscribe true --mailto leave@example.com",
        "postway streams update newsletter --unsubscribe false",
        "postway streams delete newsletter",
        "postway suppressions scoped list --stream newsletter --installation",
        "postway suppressions scoped create *@example.net --stream newsletter --reason manual",
        "postway suppressions scoped delete *@example.net --installation",
        "postway contacts list --name ACME",
        "postway contacts create ACME orders@acme.example --id acme",
        "postway contacts update acme --address a@acme.example --address b@acme.example",
        "postway contacts delete acme",
        "postway inbound list --mailbox support --status dead --kind bounce --all",
        "postway inbound show 0192d3a4-5b6c-7d8e-9f01-23456789abcd",
        "postway inbound raw 0192d3a4-5b6c-7d8e-9f01-23456789abcd",
        "postway inbound replay 0192d3a4-5b6c-7d8e-9f01-23456789abcd",
        "postway inbound resolve 0192d3a4-5b6c-7d8e-9f01-23456789abcd",
        "postway inspect a.eml b.eml -",
        "postway inspect --trust authorities.pem receipt.eml",
        "postway inspect --why bounce.eml",
        "postway doctor mailboxes",
        "postway doctor --dns 127.0.0.1:53 --json",
        "postway --tenant acme doctor",
        "postway top --interval 5 --json",
        "postway top --once",
        "postway events --follow --after now",
        "postway events --limit 5 --json",
        "postway history --by day --since 2026-01-01T00:00:00Z --account relay-1",
        "postway cleanup --older-than-seconds 0",
        "postway erase ada@example.net",
        "postway --tenant acme batches suspend b-1",
        "postway batches list --json",
        "postway suppressions create a@example.net b@example.net --reason complaint",
        "postway suppressions check a@example.net",
        "postway suppressions import list.csv --format csv",
        "postway suppressions export --output list.csv",
        "postway audit --tenant acme --limit 5",
        "postway audit --export",
        "postway nodes",
        "postway migrate status",
        "postway config print",
        "postway completions bash",
        "postway bench --messages 1000 --size 2048 --concurrency 8 --mode batch --batch-size 100 --sink builtin",
    ] {
        if let Err(error) = parse(line) {
            panic!("{line}\n{error}");
        }
    }
}

#[test]
fn verbs_of_earlier_versions_parse_and_are_not_shown() {
    for line in [
        "postway templates push mails/",
        "postway mailboxes add --host h --username u --start after:4711",
        "postway recipients add ada@example.net --external-id C-1 --name Ada --personal-number 19800101-1234",
        "postway tenants keys revoke acme k",
        "postway webhooks add https://app.example.com/hooks --event email.sent --event email.failed",
        "postway webhooks remove wh_1",
        "postway mailboxes remove bounces",
        "postway rules add rule.json --mailbox support --id orders",
        "postway rules remove orders",
        "postway streams add newsletter --name Weekly --unsubscribe true --mailto leave@example.com",
        "postway streams remove newsletter",
        "postway suppressions scoped add *@example.net --stream newsletter --reason manual",
        "postway suppressions scoped remove *@example.net --installation",
        "postway contacts add ACME orders@acme.example --id acme",
        "postway contacts remove acme",
        "postway statistics --by day --since 2026-01-01T00:00:00Z --account relay-1",
        "postway suppressions add a@example.net b@example.net --reason complaint",
    ] {
        if let Err(error) = parse(line) {
            panic!("{line}\n{error}");
        }
    }
    walk(&CommandLine::command(), "postway".to_owned(), &mut |command, name| {
        assert_eq!(command.get_visible_aliases().count(), 0, "{name}");
        let verb = name.rsplit(' ').next().unwrap_or_default();
        let is_old = matches!(verb, "add" | "push" | "revoke" | "statistics");
        assert!(!is_old && (verb != "remove" || name == "postway views remove"), "{name}");
    });
}

#[test]
fn what_contradicts_itself_is_a_usage_error_with_code_2() {
    for line in [
        "postway send --to b@example.net --text y",
        "postway send --eml a.eml --subject x",
        "postway accounts create --host h",
        "postway accounts create a --password x --password-file y",
        "postway send --eml a.eml --template welcome",
        "postway send --from a@example.com --to b@example.net --text y --var name=Ada",
        "postway templates create",
        "postway templates send-test welcome",
        "postway templates preview welcome --from mails/ --template-version 2",
        "postway dkim create example.com --algorithm dsa",
        "postway doctor domain",
        "postway doctor --dns here",
        "postway top --interval 0",
        "postway doctor domain example.com --dns here",
        "postway messages resolve m-1 --outcome maybe",
        "postway tenants delete acme",
        "postway tenants keys create acme --scope all",
        "postway tenants update acme --retention-days 1 --report-retention-seconds 1",
        "postway webhooks create",
        "postway webhooks deliveries wh_1 --status lost",
        "postway mailboxes create --host h --username u --start yesterday",
        "postway mailboxes create --password x --token-file y",
        "postway rules try orders",
        "postway rules update orders",
        "postway inbound list --status lost",
        "postway inspect",
        "postway history --by week",
        "postway erase",
        "postway suppressions create",
        "postway audit --export --all",
        "postway bench --concurrency 0",
        "postway bench --size 10",
        "postway moving check 005 --database sqlite:///a.db",
        "postway moving check 001",
        "postway moving check 000 --database mysql://r@db/o --payloads-were /srv",
    ] {
        assert_eq!(parse(line).map_err(|error| error.exit_code()).unwrap_err(), 2, "{line}");
    }
}

#[test]
fn the_help_lists_the_exit_codes() {
    let help = CommandLine::command().render_long_help().to_string();
    assert!(help.contains("3  the server cannot be reached"), "{help}");
}

/// Every command with its name as typed, `postway messages list`.
fn walk(command: &clap::Command, name: String, each: &mut dyn FnMut(&clap::Command, &str)) {
    each(command, &name);
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        walk(inner, format!("{name} {}", inner.get_name()), each);
    }
}

#[test]
fn every_command_says_what_it_does_and_every_argument_what_it_is() {
    walk(&CommandLine::command(), "postway".to_owned(), &mut |command, name| {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        assert!(!about.is_empty(), "`{name}` says nothing of itself");
        assert!(name == "postway" || !about.ends_with('.'), "`{name}`: {about}");
        assert!(about.starts_with(char::is_uppercase), "`{name}`: {about}");
        for argument in command.get_arguments() {
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(!help.is_empty(), "`{name}`: `{}` has no help", argument.get_id());
        }
    });
}

/// The words of a shell line up to a pipe, a redirection or the remark behind it; quotes hold words together.
fn words(line: &str) -> Vec<String> {
    let code = line.split("  ").next().unwrap_or_default();
    let mut words = vec![String::new()];
    let mut quoted = false;
    for character in code.chars() {
        match character {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            '|' | '>' if !quoted => break,
            other => words.last_mut().unwrap().push(other),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn every_example_in_the_help_parses() {
    let mut examples = 0;
    walk(&CommandLine::command(), "postway".to_owned(), &mut |command, name| {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for line in help.lines().filter_map(|line| line.strip_prefix("  ")) {
            if !line.starts_with("postway") {
                continue;
            }
            examples += 1;
            if let Err(error) = CommandLine::try_parse_from(words(line)) {
                panic!("{name}: {line}\n{error}");
            }
        }
    });
    assert!(examples > 40, "{examples}");
    for name in
        ["serve", "send", "messages", "accounts", "webhooks", "outbox", "bench", "inspect", "doctor", "top"]
    {
        let command = CommandLine::command();
        let found = command.find_subcommand(name).and_then(clap::Command::get_after_help);
        assert!(found.is_some_and(|help| help.to_string().contains("Examples:")), "{name} has no examples");
    }
}

#[test]
fn every_shell_gets_a_script_and_bash_can_read_its_own() {
    use clap::ValueEnum as _;
    for shell in clap_complete::Shell::value_variants() {
        let script = completions::script(*shell);
        for word in ["doctor", "top", "webhooks", "--tenant"] {
            let bare = word.trim_start_matches('-').as_bytes();
            assert!(script.windows(bare.len()).any(|part| part == bare), "{shell}: {word}");
        }
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), completions::script(clap_complete::Shell::Bash)).unwrap();
    let read = std::process::Command::new("bash").arg("-n").arg(file.path()).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
}
