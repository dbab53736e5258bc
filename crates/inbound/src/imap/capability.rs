//! The capabilities of a server.

/// The extensions that the client uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ImapCapabilities {
    pub(super) starttls: bool,
    pub(super) login_disabled: bool,
    pub(super) auth_plain: bool,
    pub(super) auth_xoauth2: bool,
    pub(super) auth_oauthbearer: bool,
    /// The first response of a sign-in may be part of the command (RFC 4959).
    pub(super) sasl_ir: bool,
    pub(super) idle: bool,
    pub(super) moves: bool,
    pub(super) uidplus: bool,
}

impl ImapCapabilities {
    /// Reads a list of capabilities. Unknown ones are ignored.
    pub(super) fn read(list: &[u8]) -> Self {
        let mut offered = Self::default();
        for word in list.split(|&b| b == b' ') {
            let known = [
                (&b"STARTTLS"[..], &mut offered.starttls),
                (b"LOGINDISABLED", &mut offered.login_disabled),
                (b"AUTH=PLAIN", &mut offered.auth_plain),
                (b"AUTH=XOAUTH2", &mut offered.auth_xoauth2),
                (b"AUTH=OAUTHBEARER", &mut offered.auth_oauthbearer),
                (b"SASL-IR", &mut offered.sasl_ir),
                (b"IDLE", &mut offered.idle),
                (b"MOVE", &mut offered.moves),
                (b"UIDPLUS", &mut offered.uidplus),
            ];
            if let Some((_, flag)) = known.into_iter().find(|(name, _)| word.eq_ignore_ascii_case(name)) {
                *flag = true;
            }
        }
        offered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_in_any_case() {
        let offered = ImapCapabilities::read(b"IMAP4rev1 idle  Auth=Plain SASL-IR X-ODD MOVED");
        assert_eq!(
            offered,
            ImapCapabilities { idle: true, auth_plain: true, sasl_ir: true, ..Default::default() }
        );
    }
}
