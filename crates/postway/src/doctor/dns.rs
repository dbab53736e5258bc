//! Asking DNS: what the checks need of it, and the resolver that does it.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use async_trait::async_trait;
use hickory_resolver::{
    TokioResolver,
    config::{
        ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
    },
    net::{NetError, runtime::TokioRuntimeProvider},
    proto::rr::{RData, RecordType},
};

/// How long one question may take, with all its tries.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// How long one try may take.
const TRY_TIMEOUT: Duration = Duration::from_secs(3);

/// A question without an answer; a name without records is an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} could not be looked up: {reason}")]
pub struct DnsError {
    /// The name that was asked for.
    pub name: String,
    /// What the resolver says.
    pub reason: String,
}

/// What the checks ask. Names have no final dot; no records is an empty list.
#[async_trait]
pub trait DnsLookup: Send + Sync {
    /// The TXT records, each put together from its strings.
    async fn txt(&self, name: &str) -> Result<Vec<String>, DnsError>;
    /// The mail exchangers with their preferences; the host of a null MX is empty.
    async fn mx(&self, name: &str) -> Result<Vec<(u16, String)>, DnsError>;
    /// The addresses, of both families.
    async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, DnsError>;
}

/// Real DNS.
pub struct SystemDns {
    resolver: TokioResolver,
}

impl SystemDns {
    /// Asks the name servers of this machine.
    pub fn from_system() -> Result<Self, DnsError> {
        let failed = |error: NetError| DnsError {
            name: "the system's DNS configuration".to_owned(),
            reason: error.to_string(),
        };
        let mut builder = TokioResolver::builder_tokio().map_err(failed)?;
        configure(builder.options_mut());
        Ok(Self { resolver: builder.build().map_err(failed)? })
    }

    /// Asks one name server.
    pub fn with_server(server: SocketAddr) -> Result<Self, DnsError> {
        let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
            connection.port = server.port();
            connection
        });
        let server_config = NameServerConfig::new(server.ip(), true, connections.into());
        let config = ResolverConfig::from_name_servers(vec![server_config]);
        let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        configure(builder.options_mut());
        let failed = |error: NetError| DnsError { name: server.to_string(), reason: error.to_string() };
        Ok(Self { resolver: builder.build().map_err(failed)? })
    }

    /// The records of a type, without the aliases that led to them.
    async fn records(&self, name: &str, kind: RecordType) -> Result<Vec<RData>, DnsError> {
        let failed = |reason: String| DnsError { name: name.to_owned(), reason };
        // With a final dot the domains that this machine searches in are left aside.
        let lookup = self.resolver.lookup(format!("{name}."), kind);
        match tokio::time::timeout(ANSWERS_WITHIN, lookup).await {
            Err(_) => Err(failed(format!("no answer within {} seconds", ANSWERS_WITHIN.as_secs()))),
            Ok(Err(error)) if error.is_no_records_found() => Ok(Vec::new()),
            Ok(Err(error)) => Err(failed(error.to_string())),
            Ok(Ok(found)) => Ok(found.answers().iter().map(|record| record.data.clone()).collect()),
        }
    }
}

fn configure(options: &mut ResolverOpts) {
    options.timeout = TRY_TIMEOUT;
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    // What this machine believes about a name is not what the world sees.
    options.use_hosts_file = ResolveHosts::Never;
}

#[async_trait]
impl DnsLookup for SystemDns {
    async fn txt(&self, name: &str) -> Result<Vec<String>, DnsError> {
        let text = |data: RData| match data {
            RData::TXT(txt) => Some(String::from_utf8_lossy(&txt.txt_data.concat()).into_owned()),
            _ => None,
        };
        Ok(self.records(name, RecordType::TXT).await?.into_iter().filter_map(text).collect())
    }

    async fn mx(&self, name: &str) -> Result<Vec<(u16, String)>, DnsError> {
        let host = |data: RData| match data {
            RData::MX(mx) => Some((mx.preference, mx.exchange.to_ascii().trim_end_matches('.').to_owned())),
            _ => None,
        };
        Ok(self.records(name, RecordType::MX).await?.into_iter().filter_map(host).collect())
    }

    async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, DnsError> {
        let (v4, v6) = tokio::join!(self.records(name, RecordType::A), self.records(name, RecordType::AAAA));
        // One family is enough to be reached by.
        let found = match (v4, v6) {
            (Ok(v4), Ok(v6)) => [v4, v6].concat(),
            (Ok(found), Err(_)) | (Err(_), Ok(found)) if !found.is_empty() => found,
            (Err(error), _) | (_, Err(error)) => return Err(error),
        };
        Ok(found.iter().filter_map(RData::ip_addr).collect())
    }
}
