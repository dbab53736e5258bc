//! The key that signs calls, and where to find one if the account has none.
//!
//! The environment comes first (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`), then the
//! shared credentials file (`AWS_SHARED_CREDENTIALS_FILE`, or `~/.aws/credentials`) with the profile that
//! `AWS_PROFILE` names, or `default`. Such a key is read once; to replace one that expires, save the account
//! again.
//!
//! If neither has a key, the machine's role gives keys that are renewed before they expire
//! ([`role`](super::role)). A container's role comes before the file, which may be in the image by accident.

use std::{env, fmt, fs, path::PathBuf};

use postway_domain::failure::{FailureCategory, FailurePhase, FailureSeverity, SendFailure};
use secrecy::SecretString;

use super::role::{RoleKeys, RoleSettings};

/// The largest shared credentials file that is read.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The key that signs calls. It is never printed.
#[derive(Clone)]
pub struct SesCredentials(AwsKeyOrigin);

#[derive(Clone)]
enum AwsKeyOrigin {
    /// A fixed key.
    Key(AwsAccessKey),
    /// Keys of a role, which expire.
    Role(RoleKeys),
}

/// An access key. It is never printed.
#[derive(Clone)]
pub(super) struct AwsAccessKey {
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
    /// A fixed key; a temporary one comes with a session token.
    pub fn new(
        access_key_id: impl Into<String>,
        secret_access_key: SecretString,
        session_token: Option<SecretString>,
    ) -> Self {
        let access_key_id = access_key_id.into();
        Self(AwsKeyOrigin::Key(AwsAccessKey { access_key_id, secret_access_key, session_token }))
    }

    /// The key of this machine: from the environment, from the shared credentials file, or by its role.
    pub fn find(region: &str) -> Result<Self, SendFailure> {
        Self::find_in(region, |name| env::var(name).ok(), read)
    }

    /// The key to sign with now. For a role this may be a network call.
    pub(super) async fn key(&self) -> Result<AwsAccessKey, SendFailure> {
        match &self.0 {
            AwsKeyOrigin::Key(key) => Ok(key.clone()),
            AwsKeyOrigin::Role(keys) => keys.key().await.map_err(|reason| missing(&reason)),
        }
    }

    fn find_in(
        region: &str,
        variable: impl Fn(&str) -> Option<String>,
        read: impl Fn(&PathBuf) -> Result<String, String>,
    ) -> Result<Self, SendFailure> {
        let variable = |name| variable(name).filter(|value| !value.is_empty());
        if let (Some(id), Some(secret)) = (variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY")) {
            let token = variable("AWS_SESSION_TOKEN").map(SecretString::from);
            return Ok(Self::new(id, secret.into(), token));
        }
        let role = RoleSettings::find(region, variable);
        let by_role = |role: RoleSettings, reason: String| {
            let keys = role.keys(reason.clone()).map_err(|error| missing(&format!("{reason}; {error}")))?;
            Ok(Self(AwsKeyOrigin::Role(keys)))
        };
        if role.is_of_container() {
            return by_role(role, "the container's role was asked".to_owned());
        }
        let found = in_file(variable, read);
        match found {
            Ok(key) => Ok(Self(AwsKeyOrigin::Key(key))),
            Err(reason) if role.is_switched_off() => Err(missing(&reason)),
            Err(reason) => by_role(role, reason),
        }
    }
}

/// The key in the shared credentials file, or why there is no key.
fn in_file(
    variable: impl Fn(&'static str) -> Option<String>,
    read: impl Fn(&PathBuf) -> Result<String, String>,
) -> Result<AwsAccessKey, String> {
    let path = match (variable("AWS_SHARED_CREDENTIALS_FILE"), variable("HOME")) {
        (Some(path), _) => PathBuf::from(path),
        (None, Some(home)) => PathBuf::from(home).join(".aws/credentials"),
        (None, None) => return Err("there is no home folder to look for .aws/credentials in".to_owned()),
    };
    let profile = variable("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
    let text = read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    in_profile(&text, &profile)
        .ok_or_else(|| format!("{} has no complete key under the profile {profile:?}", path.display()))
}

fn read(path: &PathBuf) -> Result<String, String> {
    let length = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if length > FILE_BYTES_MAX {
        return Err(format!("it has {length} bytes, more than a credentials file may have"));
    }
    fs::read_to_string(path).map_err(|error| error.to_string())
}

fn missing(reason: &str) -> SendFailure {
    let message = format!(
        "no AWS key: the account has none, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not both set, and {reason}"
    );
    SendFailure::new(
        "SES_ACCESS_DENIED",
        FailureCategory::Authentication,
        FailurePhase::Auth,
        FailureSeverity::Account,
        message,
    )
}

/// The key under `[profile]` in the text of a shared credentials file.
fn in_profile(text: &str, profile: &str) -> Option<AwsAccessKey> {
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
    let session_token = token.map(SecretString::from);
    Some(AwsAccessKey { access_key_id: id?, secret_access_key: secret?.into(), session_token })
}

#[cfg(test)]
mod tests {
    use postway_testkit::{HttpSource, SourceReply};
    use secrecy::ExposeSecret;

    use super::*;

    const FILE: &str = "# mine\n[default]\naws_access_key_id = AKID1\naws_secret_access_key=se=cret1\n\n\
                        [ work ]\naws_access_key_id=AKID2\naws_secret_access_key = secret2\n\
                        aws_session_token = token2\n[half]\naws_access_key_id=AKID3\n";

    fn find(
        variables: &[(&str, &str)],
        file: Option<&str>,
    ) -> Result<(String, String, Option<String>), SendFailure> {
        let variable =
            |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        let read = |path: &PathBuf| match file {
            Some(text) if path.ends_with("credentials") => Ok(text.to_owned()),
            _ => Err("no such file".to_owned()),
        };
        let found = SesCredentials::find_in("eu-west-1", variable, read)?;
        let AwsKeyOrigin::Key(key) = found.0 else { panic!("a fixed key is expected") };
        let token = key.session_token.map(|token| token.expose_secret().to_owned());
        Ok((key.access_key_id, key.secret_access_key.expose_secret().to_owned(), token))
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
            let off = [("AWS_EC2_METADATA_DISABLED", "true")];
            let failure = find(&[variables, &off].concat(), file).unwrap_err();
            assert!(failure.is_account() && failure.message.contains(says), "{}", failure.message);
        }
    }

    #[test]
    fn a_key_is_not_printed() {
        let printed = format!("{:?}", SesCredentials::new("AKID", "hunter2".to_owned().into(), None));
        assert!(!printed.contains("AKID") && !printed.contains("hunter2"), "{printed}");
    }

    /// A metadata service for the test.
    async fn metadata(keys: &str) -> HttpSource {
        let source = HttpSource::start().await;
        source.serve("/latest/api/token", SourceReply::ok("metadata-token"));
        source.serve("/latest/meta-data/iam/security-credentials/", SourceReply::ok("mailer"));
        source.serve("/latest/meta-data/iam/security-credentials/mailer", SourceReply::ok(keys.to_owned()));
        source
    }

    async fn key_by(variables: &[(&str, String)]) -> Result<(String, Option<String>), SendFailure> {
        let variable =
            |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.clone());
        let found = SesCredentials::find_in("eu-west-1", variable, |_| Err("no such file".to_owned()))?;
        assert!(!format!("{found:?}").contains("AKID"));
        let key = found.key().await?;
        Ok((key.access_key_id, key.session_token.map(|token| token.expose_secret().to_owned())))
    }

    const ROLE_KEY: &str = r#"{"Code":"Success","Type":"AWS-HMAC","AccessKeyId":"AKID9","SecretAccessKey":"s9",
        "Token":"session-9","Expiration":"2099-01-01T00:00:00Z"}"#;

    #[tokio::test]
    async fn an_instance_signs_with_the_key_of_its_role_asked_for_by_a_token() {
        let source = metadata(ROLE_KEY).await;
        let variables = [
            ("HOME", "/home/x".to_owned()),
            ("AWS_EC2_METADATA_SERVICE_ENDPOINT", source.url("").trim_end_matches('/').to_owned()),
        ];
        let key = key_by(&variables).await.unwrap();
        assert_eq!(key, ("AKID9".to_owned(), Some("session-9".to_owned())));
        let requests = source.requests();
        let asked: Vec<&str> = requests.iter().map(|request| request.method.as_str()).collect();
        assert_eq!(asked, ["PUT", "GET", "GET"], "version 2 of the service");
        assert_eq!(requests[2].header("x-aws-ec2-metadata-token"), Some("metadata-token"));
    }

    #[tokio::test]
    async fn a_pod_signs_with_the_key_of_its_identity_and_no_file_is_looked_for() {
        let source = HttpSource::start().await;
        source.serve("/v1/credentials", SourceReply::ok(ROLE_KEY));
        let folder = tempfile::tempdir().unwrap();
        let token_file = folder.path().join("token");
        std::fs::write(&token_file, "pod-token").unwrap();
        let variables = [
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", source.url("/v1/credentials")),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token_file.display().to_string()),
        ];
        assert_eq!(key_by(&variables).await.unwrap().0, "AKID9");
        assert_eq!(source.requests()[0].header("authorization"), Some("pod-token"));
    }

    #[tokio::test]
    async fn a_role_that_gives_no_key_is_the_accounts_fault_and_says_where_was_looked() {
        let source = metadata("<html>").await;
        let variables = [
            ("HOME", "/home/x".to_owned()),
            ("AWS_EC2_METADATA_SERVICE_ENDPOINT", source.url("").trim_end_matches('/').to_owned()),
        ];
        let failure = key_by(&variables).await.unwrap_err();
        assert!(failure.is_account() && failure.phase == FailurePhase::Auth);
        let message = &failure.message;
        assert!(
            message.contains("/home/x/.aws/credentials: no such file") && message.contains("role"),
            "{message}"
        );
    }
}
