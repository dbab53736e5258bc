//! `postway sink`: a relay for trying things out. It accepts every mail, prints its id, and passes nothing
//! on.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;

use super::CommandContext;
use super::bench::BuiltinSink;
use crate::cli::failure::CommandFailure;
use crate::server::shutdown::StopSignals;

#[derive(Args, Debug)]
pub struct SinkArgs {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:2525")]
    listen: SocketAddr,
}

pub async fn run(context: &CommandContext, args: SinkArgs) -> Result<(), CommandFailure> {
    let mut signals = StopSignals::listen().map_err(anyhow::Error::new)?;
    let mut sink = BuiltinSink::start_at(args.listen, Duration::ZERO)?;
    context.output.text(&format!("takes every mail on {} and passes none on", sink.address()))?;
    loop {
        tokio::select! {
            // Mails that arrived before the signal are printed first.
            biased;
            uid = sink.next_arrival() => match uid {
                Some(uid) => context.output.text(&format!("took {uid}"))?,
                None => return Err(anyhow::anyhow!("the sink ended").into()),
            },
            () = signals.next() => {
                sink.stop()?;
                return Ok(());
            }
        }
    }
}
