//! The configuration: whether it can be read, which settings are risky, and who else can read its secrets.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use postway_intake::AttachmentFolder;

use super::{CheckupFinding, CheckupState, CheckupSubject};
use crate::config::{ConfigErrors, LoadedConfig, ServerConfig};

/// Everything about the configuration.
pub fn check(subject: &CheckupSubject) -> Vec<CheckupFinding> {
    match &subject.loaded {
        None => vec![CheckupFinding::new("configuration", CheckupState::Skipped).found(subject.no_config())],
        Some(Err(errors)) => wrong(errors),
        Some(Ok(loaded)) => {
            let mut findings = read(loaded, subject.config_file.as_deref());
            findings.extend(exposed(&loaded.config));
            findings.extend(opened(&loaded.config));
            findings.extend(private(&loaded.config));
            findings
        }
    }
}

fn wrong(errors: &ConfigErrors) -> Vec<CheckupFinding> {
    let finding = |text: String| CheckupFinding::new("configuration", CheckupState::Problem).found(text);
    let mut findings: Vec<CheckupFinding> = errors.0.iter().map(|error| finding(error.to_string())).collect();
    if let Some(last) = findings.last_mut() {
        last.advice = Some("mend it, then run `postway config check`".to_owned());
    }
    findings
}

fn read(loaded: &LoadedConfig, file: Option<&Path>) -> Vec<CheckupFinding> {
    let source =
        file.map_or_else(|| "defaults and variables, no file".to_owned(), |file| file.display().to_string());
    let mut findings = vec![CheckupFinding::new("configuration", CheckupState::Ok).found(source)];
    for warning in &loaded.warnings {
        let advice = "mend or remove the variable; `postway config print` shows what holds";
        findings.push(CheckupFinding::new("variables", CheckupState::Warning).found(warning).advice(advice));
    }
    findings
}

/// Checks what is reachable from other machines.
fn exposed(config: &ServerConfig) -> Vec<CheckupFinding> {
    let listen = config.http.listen;
    let https = config.public_url.as_deref().is_some_and(|url| url.starts_with("https://"));
    let mut findings = vec![match (listen.ip().is_loopback(), https) {
        (true, _) => {
            CheckupFinding::new("http.listen", CheckupState::Ok).found(format!("{listen}, this machine only"))
        }
        (false, true) => CheckupFinding::new("http.listen", CheckupState::Ok)
            .found(format!("{listen}, behind the https:// of public_url")),
        (false, false) => {
            let advice = "keys and mail cross the network in the clear: put a proxy with TLS before it and listen on \
                          127.0.0.1, or let others use http.tls_listen; if a proxy is there, name its https:// address in \
                          public_url";
            CheckupFinding::new("http.listen", CheckupState::Warning)
                .found(format!("{listen}, without TLS"))
                .advice(advice)
        }
    }];
    if let Some(url) = config.public_url.as_deref().filter(|_| !https) {
        let advice = "links in mails lead there: use an https:// address";
        findings.push(CheckupFinding::new("public_url", CheckupState::Warning).found(url).advice(advice));
    }
    findings
}

/// Checks folders whose setting names no tenant.
fn opened(config: &ServerConfig) -> Vec<CheckupFinding> {
    let unnamed = config.attachments.folders.iter().filter_map(AttachmentFolder::unnamed_path);
    let finding = |path: &str| {
        let found = format!(
            "{path} is open to the tenant default alone; TENANT:{path} opens it to another, {{tenant}} in a path one to each"
        );
        CheckupFinding::new("attachments.folders", CheckupState::Ok).found(found)
    };
    unnamed.map(finding).collect()
}

/// Checks who else can read the mail and the keys.
fn private(config: &ServerConfig) -> Vec<CheckupFinding> {
    let folder = &config.data_dir;
    let mut findings = match fs::metadata(folder) {
        Ok(found) if found.is_dir() => {
            vec![judge_mode("data folder", folder, 0o077, CheckupState::Warning, "700")]
        }
        Ok(_) => {
            let advice = "data_dir (POSTWAY_DATA_DIR) must name a folder";
            vec![
                CheckupFinding::new("data folder", CheckupState::Problem)
                    .found(folder.display().to_string())
                    .advice(advice),
            ]
        }
        Err(_) => {
            let found = format!("{} is not there yet; the first start makes it", folder.display());
            return vec![CheckupFinding::new("data folder", CheckupState::Skipped).found(found)];
        }
    };
    for file in [config.admin_key_file(), config.secret_key_file()] {
        if file.exists() {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            findings.push(judge_mode(&name, &file, 0o077, CheckupState::Problem, "600"));
        }
    }
    findings
}

/// Whether none of these bits is set in a file's mode; `wanted` is what it should be.
fn judge_mode(check: &str, path: &Path, bits: u32, otherwise: CheckupState, wanted: &str) -> CheckupFinding {
    match fs::metadata(path) {
        Ok(found) => {
            let mode = found.permissions().mode() & 0o777;
            let finding =
                |state| CheckupFinding::new(check, state).found(format!("{}, mode {mode:o}", path.display()));
            match mode & bits {
                0 => finding(CheckupState::Ok),
                _ => finding(otherwise)
                    .advice(format!("others on this machine can read it: chmod {wanted} {}", path.display())),
            }
        }
        Err(error) => {
            let advice = "run this as the user that the server runs as";
            CheckupFinding::new(check, CheckupState::Skipped)
                .found(format!("{}: {error}", path.display()))
                .advice(advice)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load_from;

    fn config(env: &[(&str, &str)]) -> ServerConfig {
        load_from(None, env.iter().map(|(name, value)| (name.into(), value.into()))).unwrap().config
    }

    #[test]
    fn listening_beyond_this_machine_needs_tls_before_it() {
        let state = |env: &[(&str, &str)]| exposed(&config(env))[0].state;
        let beyond = ("POSTWAY_HTTP_LISTEN", "0.0.0.0:8520");
        assert_eq!(state(&[]), CheckupState::Ok);
        assert_eq!(state(&[beyond]), CheckupState::Warning);
        assert_eq!(state(&[beyond, ("POSTWAY_PUBLIC_URL", "https://mail.example.com")]), CheckupState::Ok);
        let plain = exposed(&config(&[("POSTWAY_PUBLIC_URL", "http://mail.example.com")]));
        assert_eq!((plain[1].check.as_str(), plain[1].state), ("public_url", CheckupState::Warning));
    }

    #[test]
    fn a_key_that_others_can_read_is_a_problem_and_an_open_folder_a_warning() {
        let folder = tempfile::tempdir().unwrap();
        let config = config(&[("POSTWAY_DATA_DIR", folder.path().to_str().unwrap())]);
        let key = config.admin_key_file();
        fs::write(&key, "x").unwrap();
        let states = |folder_mode, key_mode| {
            fs::set_permissions(&config.data_dir, fs::Permissions::from_mode(folder_mode)).unwrap();
            fs::set_permissions(&key, fs::Permissions::from_mode(key_mode)).unwrap();
            private(&config).iter().map(|finding| finding.state).collect::<Vec<_>>()
        };
        assert_eq!(states(0o700, 0o600), [CheckupState::Ok, CheckupState::Ok]);
        assert_eq!(states(0o755, 0o644), [CheckupState::Warning, CheckupState::Problem]);
        assert!(private(&config)[1].advice.as_deref().unwrap().contains("chmod 600"));
    }

    #[test]
    fn a_folder_whose_tenant_is_not_named_is_explained() {
        let found = opened(&config(&[("POSTWAY_ATTACHMENTS_FOLDERS", "/srv/a,acme:/srv/b,/srv/{tenant}")]));
        assert_eq!(found.len(), 1);
        assert!(found[0].found.as_deref().unwrap().contains("TENANT:/srv/a"));
    }

    #[test]
    fn every_error_of_a_configuration_is_a_problem() {
        let errors = load_from(None, [("POSTWAY_HTTP_LISTEN".into(), "here".into())]).unwrap_err();
        let findings = wrong(&errors);
        assert_eq!((findings.len(), findings[0].state), (1, CheckupState::Problem));
        assert!(findings[0].advice.as_deref().unwrap().contains("config check"));
    }
}
