//! The configuration, with the setting names of the installed version.

use std::{path::Path, path::PathBuf, process::Command};

use super::PASSWORD;
use crate::package::run;

/// Where it listens.
#[derive(Clone, Copy)]
pub(super) struct Ports {
    pub(super) imap: u16,
    pub(super) imaps: u16,
    pub(super) lmtp: u16,
}

/// What 2.3, as in Debian 12 and Ubuntu 24.04, calls things.
const WORDS_2_3: &str = r"
mail_location = maildir:~/Maildir
mail_home = FOLDER/mail/%u
disable_plaintext_auth = no
ssl_cert = <FOLDER/cert.pem
ssl_key = <FOLDER/key.pem
passdb {
  driver = static
  args = password=PASSWORD
}
userdb {
  driver = static
  args = uid=OWNER gid=GROUP home=FOLDER/mail/%u allow_all_users=yes
}
";

/// What 2.4 calls them, as in Debian 13.
const WORDS_2_4: &str = r"
mail_driver = maildir
mail_path = ~/Maildir
mail_home = FOLDER/mail/%{user}
auth_allow_cleartext = yes
ssl_server_cert_file = FOLDER/cert.pem
ssl_server_key_file = FOLDER/key.pem
passdb static {
  password = PASSWORD
}
userdb static {
  allow_all_users = yes
  fields {
    uid = OWNER
    gid = GROUP
    home = FOLDER/mail/%{user}
  }
}
";

/// Without root there is no chroot and no change of user: all of it runs as one.
const COMMON: &str = r"
base_dir = FOLDER/run
state_dir = FOLDER/state
log_path = /dev/stderr
protocols = imap lmtp
listen = 127.0.0.1
default_internal_user = OWNER
default_internal_group = GROUP
default_login_user = OWNER
first_valid_uid = 1
mail_uid = OWNER
mail_gid = GROUP
mail_fsync = never
mail_max_userip_connections = 100
auth_mechanisms = plain login
auth_failure_delay = 0
ssl = yes
service anvil {
  chroot =
}
service imap-login {
  chroot =
  service_count = 0
  inet_listener imap {
    port = IMAP
  }
  inet_listener imaps {
    port = SECURE
    ssl = yes
  }
}
service lmtp {
  inet_listener lmtp {
    port = LMTP
  }
}
namespace inbox {
  inbox = yes
}
";

/// Tokens, in the words of 2.3: a server is asked whether they are good, and whose they are.
const TOKENS_2_3: &str = r"
auth_mechanisms = plain login xoauth2 oauthbearer
passdb {
  driver = oauth2
  mechanisms = xoauth2 oauthbearer
  args = FOLDER/oauth2.conf
}
";

/// The same for 2.4.
const TOKENS_2_4: &str = r"
auth_mechanisms = plain login xoauth2 oauthbearer
passdb oauth2 {
  mechanisms_filter = xoauth2 oauthbearer
}
oauth2 {
  introspection_mode = post
  introspection_url = INTROSPECTION
  username_attribute = sub
}
";

/// What 2.3 reads from a file of its own.
pub(super) fn introspection(url: &str) -> String {
    format!(
        "introspection_mode = post\nintrospection_url = {url}\nusername_attribute = sub\nactive_attribute = active\nactive_value = true\n"
    )
}

/// A configuration for a server in that folder. It accepts tokens if `introspection` names where to verify
/// them.
pub(super) fn write(folder: &Path, ports: Ports, owner: &str, introspection_url: Option<&str>) -> String {
    let version = run(Command::new(program("dovecot")).arg("--version"));
    // Debian adds its own number: 2.4.1-4.
    let version = version.split(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap_or_default();
    let is_older = version.starts_with("2.3.") || version.starts_with("2.2.");
    let (head, words, tokens) = match is_older {
        true => (String::new(), WORDS_2_3, TOKENS_2_3),
        false => {
            let head = format!("dovecot_config_version = {version}\ndovecot_storage_version = {version}\n");
            (head, WORDS_2_4, TOKENS_2_4)
        }
    };
    let tokens = introspection_url.map(|url| tokens.replace("INTROSPECTION", url)).unwrap_or_default();
    let group = run(Command::new("id").args(["-gn", owner]));
    [head.as_str(), words, COMMON, tokens.as_str()]
        .concat()
        .replace("FOLDER", &folder.display().to_string())
        .replace("PASSWORD", PASSWORD)
        .replace("OWNER", owner)
        .replace("GROUP", group.trim())
        .replace("IMAP", &ports.imap.to_string())
        .replace("SECURE", &ports.imaps.to_string())
        .replace("LMTP", &ports.lmtp.to_string())
}

/// Where a program of Dovecot's is.
pub(super) fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    let mut found = folders.map(|folder| folder.join(name)).filter(|file| file.is_file());
    found.next().unwrap_or_else(|| {
        panic!("{name} is missing: these tests need Debian's packages dovecot-imapd and dovecot-lmtpd")
    })
}
