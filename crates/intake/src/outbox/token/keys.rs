//! The keys that make and check the tokens of one source, for each generation of the gateway's secret key.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use postway_domain::secret::SecretKey;

use super::{
    super::{OutboxAccounts, OutboxSource},
    SignedLink, TokenLinkKey, TokenMint,
};

/// The keys of one generation.
pub(in super::super) struct TokenKeys {
    pub(super) link: TokenLinkKey,
    pub(super) mint: TokenMint,
}

impl TokenKeys {
    /// The keys of every generation, the newest first. A key that the application shares signs the links of
    /// all of them.
    pub(in super::super) fn generations(
        source: &OutboxSource,
        accounts: &OutboxAccounts,
        secret_key: &SecretKey,
    ) -> Vec<Self> {
        let of = |key: &SecretKey| Self {
            link: accounts.link_key.clone().unwrap_or_else(|| TokenLinkKey::own(key)),
            mint: TokenMint::new(key, &source.name),
        };
        secret_key.generations().map(of).collect()
    }

    /// Whether this generation made a code: the stored digest and the signature of the link must both match.
    pub(in super::super) fn made(
        &self,
        nonce: &str,
        code: &str,
        code_hash: &[u8],
        path: &str,
        link: &SignedLink,
    ) -> bool {
        let is_code = verify_slices_are_equal(&self.mint.code_hash(nonce, code), code_hash).is_ok();
        let is_signed = self.link.sign(path, &link.secret, code).is(&link.tag);
        is_code & is_signed
    }
}
