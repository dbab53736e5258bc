//! The key that calls are signed with, and where it is found when the account has none of its own.
//!
//! Looked for in the environment first (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`), then in
//! the shared credentials file (`AWS_SHARED_CREDENTIALS_FILE`, or `~/.aws/credentials`), under the profile that
//! `AWS_PROFILE` names, or `default`. It is read once: a key that expires is replaced by saving the account again.

use std::{env, fmt, fs, path::PathBuf};

use postway_domain::failure::{Category, Failure, Phase, Severity};
use secrecy::SecretString;

/// Longer than any shared credentials file has reason to be.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// An access key. Nothing of it is ever printed.
#[derive(Clone)]
pub struct SesCredentials {
    pub(super) access_key_id: String,
    pub(super) secret_access_key: SecretString,
    pub(super) session_token: Option<SecretString>,
}

impl fmt::Debug for SesCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SesCredentials(hidden)")
    }
}

impl SesCredentials {
    /// A key that is known; temporary ones come with a session token.
    pub fn new(
        access_key_id: impl Into<String>,
        secret_access_key: SecretString,
        session_token: Option<SecretString>,
    ) -> Self {
        Self { access_key_id: access_key_id.into(), secret_access_key, session_token }
    }

    /// The key of this machine: from the environment, else from the shared credentials file.
    pub fn find() -> Result<Self, Failure> {
        Self::find_in(|name| env::var(name).ok(), read)
    }

    fn find_in(
        variable: impl Fn(&str) -> Option<String>,
        read: impl Fn(&PathBuf) -> Result<String, String>,
    ) -> Result<Self, Failure> {
        let variable = |name| variable(name).filter(|value| !value.is_empty());
        if let (Some(id), Some(secret)) = (variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY")) {
            let token = variable("AWS_SESSION_TOKEN").map(SecretString::from);
            return Ok(Self::new(id, secret.into(), token));
        }
        let path = match (variable("AWS_SHARED_CREDENTIALS_FILE"), variable("HOME")) {
            (Some(path), _) => PathBuf::from(path),
            (None, Some(home)) => PathBuf::from(home).join(".aws/credentials"),
            (None, None) => return Err(missing("there is no home folder to look for .aws/credentials in")),
        };
        let profile = variable("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
        let text = read(&path).map_err(|error| missing(&format!("{}: {error}", path.display())))?;
        in_profile(&text, &profile).ok_or_else(|| {
            missing(&format!("{} has no complete key under the profile {profile:?}", path.display()))
        })
    }
}

fn read(path: &PathBuf) -> Result<String, String> {
    let length = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if length > FILE_BYTES_MAX {
        return Err(format!("it has {length} bytes, more than a credentials file may have"));
    }
    fs::read_to_string(path).map_err(|error| error.to_string())
}

fn missing(reason: &str) -> Failure {
    let message = format!(
        "no AWS key: the account has none, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not both set, and {reason}"
    );
    Failure::new("SES_ACCESS_DENIED", Category::Authentication, Phase::Auth, Severity::Account, message)
}

/// The key under `[profile]` in the text of a shared credentials file.
fn in_profile(text: &str, profile: &str) -> Option<SesCredentials> {
    let (mut id, mut secret, mut token) = (None, None, None);
    let mut is_inside = false;
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            is_inside = name.trim() == profile;
        } else if let Some((name, value)) = line.split_once('=').filter(|_| is_inside) {
            let value = Some(value.trim().to_owned()).filter(|value| !value.is_empty());
            match name.trim() {
                "aws_access_key_id" => id = value,
                "aws_secret_access_key" => secret = value,
                "aws_session_token" => token = value,
                _ => {}
            }
        }
    }
    Some(SesCredentials::new(id?, secret?.into(), token.map(SecretString::from)))
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    const FILE: &str = "# mine\n[default]\naws_access_key_id = AKID1\naws_secret_access_key=se=cret1\n\n\
                        [ work ]\naws_access_key_id=AKID2\naws_secret_access_key = secret2\n\
                        aws_session_token = token2\n[half]\naws_access_key_id=AKID3\n";

    fn find(
        variables: &[(&str, &str)],
        file: Option<&str>,
    ) -> Result<(String, String, Option<String>), Failure> {
        let variable =
            |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        let read = |path: &PathBuf| match file {
            Some(text) if path.ends_with("credentials") => Ok(text.to_owned()),
            _ => Err("no such file".to_owned()),
        };
        let found = SesCredentials::find_in(variable, read)?;
        let token = found.session_token.map(|token| token.expose_secret().to_owned());
        Ok((found.access_key_id, found.secret_access_key.expose_secret().to_owned(), token))
    }

    #[test]
    fn the_environment_comes_before_the_file() {
        let pair = [("AWS_ACCESS_KEY_ID", "AKID"), ("AWS_SECRET_ACCESS_KEY", "secret"), ("HOME", "/home/x")];
        assert_eq!(find(&pair, Some(FILE)).unwrap(), ("AKID".to_owned(), "secret".to_owned(), None));
        let half = [("AWS_ACCESS_KEY_ID", "AKID"), ("AWS_SECRET_ACCESS_KEY", ""), ("HOME", "/home/x")];
        assert_eq!(find(&half, Some(FILE)).unwrap().0, "AKID1");
    }

    #[test]
    fn the_file_is_read_by_profile() {
        let default = find(&[("HOME", "/home/x")], Some(FILE)).unwrap();
        assert_eq!(default, ("AKID1".to_owned(), "se=cret1".to_owned(), None));
        let work = [("AWS_SHARED_CREDENTIALS_FILE", "/etc/credentials"), ("AWS_PROFILE", "work")];
        let work = find(&work, Some(FILE)).unwrap();
        assert_eq!(work, ("AKID2".to_owned(), "secret2".to_owned(), Some("token2".to_owned())));
    }

    #[test]
    fn a_missing_key_is_the_accounts_fault_and_says_where_was_looked() {
        for (variables, file, says) in [
            (&[][..], None, "home folder"),
            (&[("HOME", "/home/x")][..], None, "/home/x/.aws/credentials: no such file"),
            (&[("HOME", "/home/x"), ("AWS_PROFILE", "half")][..], Some(FILE), "\"half\""),
            (&[("HOME", "/home/x"), ("AWS_PROFILE", "none")][..], Some(FILE), "\"none\""),
        ] {
            let failure = find(variables, file).unwrap_err();
            assert!(failure.is_account() && failure.message.contains(says), "{}", failure.message);
        }
    }

    #[test]
    fn a_key_is_not_printed() {
        let printed = format!("{:?}", SesCredentials::new("AKID", "hunter2".to_owned().into(), None));
        assert!(!printed.contains("AKID") && !printed.contains("hunter2"), "{printed}");
    }
}
