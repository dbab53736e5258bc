//! Logs stored secrets that the secret key does not decrypt, from the start until all of them decrypt.
//!
//! Mail of the accounts concerned waits rather than fails, and everything else works, so the server starts
//! all the same. If the store cannot be read, the check is repeated a minute later.

use std::{sync::Arc, time::Duration};

use postway_api::UnopenedSecrets;
use postway_domain::secret::SecretKey;
use postway_store::Store;
use tokio_util::sync::CancellationToken;

/// How long until the check is repeated: an operator may have set the secrets again.
const AGAIN: Duration = Duration::from_secs(60);
/// The most places that one log line names.
const NAMED_MAX: usize = 5;

/// Checks until every secret decrypts, or until `stop` is cancelled.
pub async fn run(
    unopened: Arc<UnopenedSecrets>,
    store: Arc<dyn Store>,
    key: Arc<SecretKey>,
    stop: CancellationToken,
) {
    let mut reported = 0;
    loop {
        match unopened.check(&*store, &key).await {
            Ok(places) if places.is_empty() => {
                if reported > 0 {
                    tracing::info!("the secret key opens everything that is stored");
                }
                return;
            }
            Ok(places) => {
                if places.len() != reported {
                    tracing::error!(
                        secrets = places.len(),
                        places = places[..places.len().min(NAMED_MAX)].join(", "),
                        "stored secrets do not open: this is not the secret key that sealed them; put that one into \
                         secret.key (POSTWAY_SECRET_KEY) or into POSTWAY_SECRET_KEY_PREVIOUS, or set the secrets anew"
                    );
                }
                reported = places.len();
            }
            Err(error) => tracing::warn!(%error, "cannot check whether stored secrets open"),
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(AGAIN) => {}
        }
    }
}
