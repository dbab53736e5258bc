//! Loading as a whole: layers, sources, errors, printing.

use super::*;

const ADMIN_KEY: &str = "0123456789abcdef0123456789abcdef";

fn load_with(file: &str, env: &[(&str, &str)]) -> Result<LoadedConfig, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("postway.toml");
    std::fs::write(&path, file).unwrap();
    let env = env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    load_from(Some(&path), env)
        .map_err(|errors| errors.to_string().replace(&format!("{}", path.display()), "postway.toml"))
}

fn error_of(file: &str, env: &[(&str, &str)]) -> String {
    load_with(file, env).expect_err("the configuration is wrong")
}

#[test]
fn nothing_configured_gives_the_documented_defaults() {
    let LoadedConfig { config, warnings, .. } = load_from(None, []).unwrap();
    assert_eq!(config.data_dir, Path::new("./data"));
    let DatabaseConfig::Sqlite { path } = &config.database else { panic!("{:?}", config.database) };
    assert_eq!(path, Path::new("./data/postway.db"));
    assert_eq!(config.http.listen.to_string(), "127.0.0.1:8520");
    assert_eq!(config.http.max_message_bytes, 10 * 1024 * 1024);
    assert_eq!(config.http.max_request_bytes, 40 * 1024 * 1024);
    assert_eq!((config.http.max_connections, config.http.max_connections_per_client), (4_096, 512));
    assert!(config.http.trusted_proxies.is_empty() && config.telemetry.metrics_key.is_none());
    assert_eq!(config.dispatch.max_in_flight, 512);
    assert_eq!(config.dispatch.drain.as_secs(), 30);
    assert_eq!(config.retention.audit, Some(std::time::Duration::from_secs(365 * 86_400)));
    assert_eq!(config.retention.reported, std::time::Duration::from_secs(604_800));
    assert_eq!(config.log.format, LogFormat::Text);
    assert!(config.smtp.listen.is_none() && config.admin_key.is_none() && config.secret_key.is_none());
    assert!(
        !config.smtp.ehlo_name.is_empty() && config.allow_private_targets.is_empty() && warnings.is_empty()
    );
}

#[test]
fn the_environment_overrides_the_file_and_the_file_the_defaults() {
    let file = "data_dir = '/srv/postway'\n[http]\nlisten = '0.0.0.0:80'\nmax_message_bytes = 1_000_000\n";
    let env = [("POSTWAY_HTTP_LISTEN", "[::1]:9000"), ("POSTWAY_ALLOW_PRIVATE_TARGETS", "10.0.0.0/8, ::1")];
    let LoadedConfig { config, .. } = load_with(file, &env).unwrap();
    assert_eq!(config.http.listen.to_string(), "[::1]:9000");
    assert_eq!(config.http.max_message_bytes, 1_000_000);
    let DatabaseConfig::Sqlite { path } = &config.database else { panic!("{:?}", config.database) };
    assert_eq!(path, Path::new("/srv/postway/postway.db"));
    assert_eq!(config.allow_private_targets.len(), 2);
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let LoadedConfig { config, .. } =
        load_with("[http]\nlisten = '127.0.0.1:1'", &[("POSTWAY_HTTP_LISTEN", "")]).unwrap();
    assert_eq!(config.http.listen.port(), 1);
}

#[test]
fn unknown_keys_are_errors_that_name_key_and_line() {
    let error = error_of("data_dir = 'x'\n\n[http]\nlisen = 'y'\n[colours]\nred = 1\n", &[]);
    assert!(
        error.contains("postway.toml line 4: unknown key `http.lisen`; did you mean `http.listen`?"),
        "{error}"
    );
    assert!(error.contains("postway.toml line 5: unknown key `colours`"), "{error}");
    assert!(error_of("http = 1", &[]).contains("line 1: unknown key `http`; write a section: [http]"));
}

#[test]
fn unknown_variables_warn_and_the_command_lines_own_do_not() {
    let env =
        [("POSTWAY_HTTP_LISTNE", "x"), ("POSTWAY_URL", "http://h"), ("POSTWAY_API_KEY", "k"), ("HOME", "/")];
    let LoadedConfig { warnings, .. } = load_with("", &env).unwrap();
    assert_eq!(
        warnings,
        ["unknown variable POSTWAY_HTTP_LISTNE is ignored; did you mean POSTWAY_HTTP_LISTEN?"]
    );
}

#[test]
fn all_wrong_values_are_told_at_once_with_their_sources() {
    let file = "admin_key = 'short'\n[http]\nlisten = 8520\n[dispatch]\nmax_in_flight = 0\n";
    let env = [
        ("POSTWAY_SECRET_KEY", "abc"),
        ("POSTWAY_DATABASE_URL", "redis://db/postway"),
        ("POSTWAY_LOG_FORMAT", "xml"),
    ];
    let error = error_of(file, &env);
    for part in [
        "`admin_key` from postway.toml line 1: must be 32",
        "`http.listen` from postway.toml line 3: must be a string in quotes, not integer",
        "`dispatch.max_in_flight` from postway.toml line 5: `0` must be a whole number from 1",
        "`secret_key` from POSTWAY_SECRET_KEY: must be 32 bytes in standard base64",
        "`database.url` from POSTWAY_DATABASE_URL: unknown scheme",
        "`log.format` from POSTWAY_LOG_FORMAT: `xml` is not a format",
    ] {
        assert!(error.contains(part), "{part} is missing in:\n{error}");
    }
    assert!(!error.contains("hunter2") && !error.contains("short"), "a secret is shown:\n{error}");
}

#[test]
fn a_syntax_error_names_its_line() {
    assert!(error_of("[http]\nlisten = \n", &[]).contains("postway.toml line 2: not valid TOML"));
}

#[test]
fn a_named_file_that_is_missing_is_an_error() {
    let errors = load_from(Some(Path::new("/nonexistent/postway.toml")), []).unwrap_err();
    assert!(errors.to_string().starts_with("cannot read /nonexistent/postway.toml"));
}

#[test]
fn secrets_come_from_files_named_in_the_file_or_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    std::fs::write(&path, format!("{ADMIN_KEY}\n")).unwrap();
    let path = path.to_str().unwrap();
    let by_env = load_with("", &[("POSTWAY_ADMIN_KEY_FILE", path)]).unwrap();
    let by_file = load_with(&format!("admin_key_file = '{path}'"), &[]).unwrap();
    for LoadedConfig { config, .. } in [by_env, by_file] {
        assert_eq!(config.admin_key.unwrap().expose(), ADMIN_KEY);
    }
    let both = error_of("", &[("POSTWAY_ADMIN_KEY_FILE", path), ("POSTWAY_ADMIN_KEY", ADMIN_KEY)]);
    assert!(both.contains("keep one of the two"), "{both}");
    let missing = error_of("", &[("POSTWAY_SECRET_KEY_FILE", "/nonexistent/key")]);
    assert!(missing.contains("cannot read /nonexistent/key"), "{missing}");
}

#[test]
fn a_request_may_not_be_smaller_than_a_message() {
    let error = error_of("[http]\nmax_message_bytes = 4096\nmax_request_bytes = 2048", &[]);
    assert!(error.contains("must be at least http.max_message_bytes, which is 4096"), "{error}");
}

#[test]
fn what_is_printed_masks_secrets_names_sources_and_loads_again() {
    let env = [("POSTWAY_ADMIN_KEY", ADMIN_KEY), ("POSTWAY_ALLOW_PRIVATE_TARGETS", "10.0.0.0/8,::1")];
    let printed = load_with("[http]\nlisten = '127.0.0.1:1'", &env).unwrap().to_toml();
    assert!(!printed.contains(ADMIN_KEY), "{printed}");
    assert!(printed.contains("# admin_key = \"***\"  # POSTWAY_ADMIN_KEY"), "{printed}");
    assert!(printed.contains("# secret_key: made on first start"), "{printed}");
    assert!(printed.contains("listen = \"127.0.0.1:1\"  # "), "{printed}");
    assert!(printed.contains("max_in_flight = 512  # default"), "{printed}");
    let again = load_with(&printed, &[]).unwrap().config;
    assert_eq!(again.http.listen.port(), 1);
    assert_eq!(again.allow_private_targets.len(), 2);
}

#[test]
fn the_debug_form_of_a_configuration_has_no_secret() {
    let LoadedConfig { config, .. } = load_with("", &[("POSTWAY_ADMIN_KEY", ADMIN_KEY)]).unwrap();
    assert!(!format!("{config:?}").contains(ADMIN_KEY));
}

#[test]
fn doors_are_all_none_or_those_named_and_the_one_at_the_root_is_open() {
    use postway_api::CompatApi::{Pipeline, Proxy, Resend};
    let doors = |file: &str, env: &[(&str, &str)]| load_with(file, env).unwrap().config.compat;
    assert_eq!(doors("", &[]), CompatConfig::default());
    assert!(doors("[compat]\ndoors = 'none'", &[]).doors.is_empty());
    let listed = doors("[compat]\ndoors = ['001', 'resend']\nroot = '001'", &[]);
    assert_eq!((listed.doors, listed.root), ([Proxy, Resend].into(), Some(Proxy)));
    let env = [("POSTWAY_COMPAT_DOORS", "004, resend"), ("POSTWAY_COMPAT_ROOT", "resend")];
    assert_eq!(doors("[compat]\ndoors = 'all'", &env).doors, [Pipeline, Resend].into());
    let error = error_of("[compat]\ndoors = ['001', '005']", &[]);
    assert!(error.contains("compat.doors") && error.contains("`005` is no door"), "{error}");
    let error = error_of("[compat]\ndoors = ['004']\nroot = '001'", &[]);
    assert!(error.contains("compat.root") && error.contains("`proxy` is not open"), "{error}");
    assert!(error_of("[compat]\ndoors = 1", &[]).contains("must be a string in quotes or a list of strings"));
    let printed = load_with("[compat]\ndoors = ['001', 'resend']", &[]).unwrap().to_toml();
    assert!(printed.contains(r#"doors = ["001", "resend"]"#), "{printed}");
    assert!(load_with("", &[]).unwrap().to_toml().contains(r#"doors = "all""#));
}

/// The example for containers names settings that exist, with values that can be used, and its networks
/// agree.
#[test]
fn the_compose_example_is_right() {
    let text = include_str!("../../../../deploy/compose.yml");
    let settings = text.lines().filter_map(|line| {
        let (name, value) = line.trim_start_matches([' ', '#']).split_once(": ")?;
        name.starts_with("POSTWAY_").then(|| (OsString::from(name), OsString::from(value.trim_matches('"'))))
    });
    let settings: Vec<_> = settings.collect();
    assert_eq!(settings.len(), 6, "{settings:?}");
    let loaded = load_from(None, settings).unwrap();
    let warned = &loaded.warnings;
    assert!(warned.len() == 1 && warned[0].starts_with("smtp has no certificate"), "{warned:?}");
    let smtp = &loaded.config.smtp;
    let subnet = text.lines().find_map(|line| line.trim().strip_prefix("- subnet: ")).unwrap();
    assert_eq!(smtp.plaintext_networks, [subnet.parse().unwrap()]);
    assert_eq!(smtp.open_networks[0].network, smtp.plaintext_networks[0]);
    let port = smtp.listen.unwrap().port();
    assert!(text.contains(&format!("SMTP_PORT: \"{port}\"")) && text.contains("SMTP_HOST: postway\n"));
    let exposed = include_str!("../../../../deploy/Containerfile");
    assert!(exposed.lines().any(|line| line == format!("EXPOSE 8520 {port}")));
}
