//! Names to addresses: once for each send, in bounded time, and every address judged by the policy before anything connects
//! to it. Nothing is kept for the next send, so that no answer is used under a policy that has not judged it, and names of
//! one tenant that nobody answers for do not hold up those of others.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::Name;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use url::Host;

use super::closed::{ClosedWorld, Lead};
use super::egress;
use super::request::Refusal;
use crate::config::{GatewayConfig, ms};
use crate::policy::{Egress, Origin};

/// A place that the policy allows, resolved to addresses that it allows.
#[derive(Clone, Debug)]
pub struct Target {
    pub origin: Origin,
    /// In the order in which they are tried; or why there are none, for people.
    pub addresses: Result<Vec<SocketAddr>, String>,
    /// Certificates that the deployment trusts beside the platform's, in PEM.
    pub ca: Option<Arc<str>>,
    /// The addresses are those of a stand-in, which speaks plain HTTP whatever the origin's scheme is.
    pub stand_in: bool,
}

#[derive(Debug)]
pub struct Resolver {
    source: Source,
    places: Places,
    limit: Duration,
    max_addresses: usize,
    closed: Option<Arc<dyn ClosedWorld>>,
}

/// Why a name has no address.
enum Why {
    /// Nobody said.
    Silent,
    Said(&'static str),
}

/// Whoever is asked.
#[derive(Debug)]
enum Source {
    System,
    Servers(Box<TokioResolver>),
}

impl Resolver {
    pub fn new(config: &GatewayConfig, closed: Option<Arc<dyn ClosedWorld>>) -> Self {
        let limit = ms(config.resolve_ms);
        let source = match config.dns_servers.as_slice() {
            [] => Source::System,
            servers => Source::Servers(Box::new(client(servers, limit, config.max_resolving))),
        };
        let places = Places::new(config.max_resolving, config.max_tenant_resolving);
        Self { source, places, limit, max_addresses: config.max_addresses, closed }
    }

    /// Resolves an allowed origin and keeps the addresses that the policy allows. A name that leads nowhere is a target
    /// without addresses: an answer that is recorded needs none. Fails when the policy allows no address that was found.
    pub async fn target(
        &self,
        tenant: &str,
        origin: Origin,
        egress: &Egress,
        at_most: Duration,
    ) -> Result<Target, Refusal> {
        let ca: Option<Arc<str>> = egress.ca.as_deref().map(Arc::from);
        let lead = self.closed.as_ref().map_or(Lead::Outside, |world| world.lead(&origin));
        let addresses = match lead {
            Lead::To(address) => Some(Ok(vec![address])),
            Lead::Nowhere => Some(Err(format!("nothing stands for {origin} in this closed world"))),
            Lead::Outside => None,
        };
        if let Some(addresses) = addresses {
            return Ok(Target { origin, addresses, ca, stand_in: true });
        }
        let (found, named) = match &origin.host {
            Host::Ipv4(ip) => (Ok(vec![SocketAddr::new((*ip).into(), origin.port)]), true),
            Host::Ipv6(ip) => (Ok(vec![SocketAddr::new((*ip).into(), origin.port)]), true),
            Host::Domain(name) => (self.resolve(tenant, name, origin.port, at_most).await, false),
        };
        let found = match found {
            Ok(found) => found,
            Err(why) => return Ok(Target { origin, addresses: Err(why), ca, stand_in: false }),
        };
        let first = found.first().map(SocketAddr::ip);
        let allowed: Vec<_> = found.into_iter().filter(|a| named || egress::allowed(a.ip(), egress)).collect();
        match first {
            Some(ip) if allowed.is_empty() => Err(Refusal::Denied(format!(
                "{origin} is at {ip}, which is not a public address; add \"{ip}\" to policy.egress.private_addresses to allow it"
            ))),
            Some(_) => {
                let addresses = Ok(in_turns(&allowed, self.max_addresses));
                Ok(Target { origin, addresses, ca, stand_in: false })
            }
            None => {
                let why = format!("the name of {origin} has no address");
                Ok(Target { origin, addresses: Err(why), ca, stand_in: false })
            }
        }
    }

    async fn resolve(&self, tenant: &str, name: &str, port: u16, at_most: Duration) -> Result<Vec<SocketAddr>, String> {
        let (limit, whose) = match at_most < self.limit {
            true => (at_most, "the call's own time-out"),
            false => (self.limit, "gateway.resolve_ms"),
        };
        let late = |why: &str| format!("the name {name} was not resolved in {} ms ({whose}): {why}", limit.as_millis());
        let until = Instant::now() + limit;
        let place = match timeout_at(until, self.places.take(tenant)).await {
            Ok(Ok(place)) => place,
            Ok(Err(_)) => return Err("names are no longer resolved here".to_owned()),
            Err(_) => return Err(late("too many others were (gateway.max_tenant_resolving, gateway.max_resolving)")),
        };
        match timeout_at(until, self.ask(name, port, place)).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(Why::Said(why))) => Err(format!("the name {name} {why}")),
            Ok(Err(Why::Silent)) | Err(_) => Err(late("no name server answered")),
        }
    }

    async fn ask(&self, name: &str, port: u16, place: Place) -> Result<Vec<SocketAddr>, Why> {
        match &self.source {
            Source::System => ask_system(name.to_owned(), port, place).await,
            Source::Servers(client) => {
                let _place = place;
                let mut name = Name::from_ascii(name).map_err(|_| Why::Said("is not one that name servers know"))?;
                // Search domains belong to people's own machines.
                name.set_fqdn(true);
                let found = client.lookup_ip(name).await.map_err(|error| why(&error))?;
                Ok(found.iter().map(|ip| SocketAddr::new(ip, port)).collect())
            }
        }
    }
}

/// The system's own look-up cannot be stopped: it holds its place until it has ended, even when nobody waits for it.
async fn ask_system(name: String, port: u16, place: Place) -> Result<Vec<SocketAddr>, Why> {
    let asking = tokio::spawn(async move {
        let found = tokio::net::lookup_host((name.as_str(), port)).await.map(Vec::from_iter);
        drop(place);
        found
    });
    match asking.await {
        Ok(Ok(found)) => Ok(found),
        _ => Err(Why::Said("cannot be resolved")),
    }
}

fn why(error: &NetError) -> Why {
    match error {
        NetError::Timeout => Why::Silent,
        error if error.is_nx_domain() => Why::Said("does not exist"),
        error if error.is_no_records_found() => Why::Said("has no address"),
        _ => Why::Said("cannot be resolved"),
    }
}

/// A client of these name servers alone, which remembers nothing.
#[allow(clippy::expect_used, reason = "a fixed choice of library parts, the same at every start")]
fn client(servers: &[SocketAddr], limit: Duration, at_once: usize) -> TokioResolver {
    let config = ResolverConfig::from_name_servers(servers.iter().map(name_server).collect());
    let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    let options = builder.options_mut();
    options.use_hosts_file = ResolveHosts::Never;
    options.cache_size = 0;
    options.positive_max_ttl = Some(Duration::ZERO);
    options.negative_max_ttl = Some(Duration::ZERO);
    // Two rounds, and time to spare: a server that leaves one of two questions open must not hide the answer to the other.
    options.timeout = limit * 2 / 5;
    options.attempts = 1;
    // Two questions for each name, all over one connection where it comes to that: no tenant may find it taken.
    options.max_active_requests = at_once.saturating_mul(2);
    builder.build().expect("without TLS nothing in it can fail")
}

fn name_server(address: &SocketAddr) -> NameServerConfig {
    let mut server = NameServerConfig::udp_and_tcp(address.ip());
    for connection in &mut server.connections {
        connection.port = address.port();
    }
    server
}

/// Each address once, and at most so many; the two families in turns, so that one that leads nowhere costs one try.
fn in_turns(addresses: &[SocketAddr], most: usize) -> Vec<SocketAddr> {
    let begins_with_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<SocketAddr>, Vec<SocketAddr>) =
        addresses.iter().copied().partition(|address| address.is_ipv6() == begins_with_v6);
    let mut ordered = Vec::new();
    for at in 0..first.len().max(second.len()) {
        for address in [first.get(at), second.get(at)].into_iter().flatten() {
            if ordered.len() < most && !ordered.contains(address) {
                ordered.push(*address);
            }
        }
    }
    ordered
}

/// Bounds the names that are being resolved at once.
#[derive(Debug)]
struct Places {
    node: Arc<Semaphore>,
    /// Those of tenants that have one taken or wait for one.
    tenants: Mutex<HashMap<String, Weak<Semaphore>>>,
    per_tenant: usize,
}

/// A place for one name.
#[derive(Debug)]
struct Place {
    _tenant: OwnedSemaphorePermit,
    _node: OwnedSemaphorePermit,
}

impl Places {
    fn new(node: usize, per_tenant: usize) -> Self {
        Self { node: Arc::new(Semaphore::new(node)), tenants: Mutex::default(), per_tenant }
    }

    /// Waits for a place. The tenant's own comes first: who waits for it takes none from others.
    async fn take(&self, tenant: &str) -> Result<Place, AcquireError> {
        let _tenant = self.of(tenant).acquire_owned().await?;
        let _node = self.node.clone().acquire_owned().await?;
        Ok(Place { _tenant, _node })
    }

    fn of(&self, tenant: &str) -> Arc<Semaphore> {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(places) = tenants.get(tenant).and_then(Weak::upgrade) {
            return places;
        }
        tenants.retain(|_, places| places.strong_count() > 0);
        let places = Arc::new(Semaphore::new(self.per_tenant));
        tenants.insert(tenant.to_owned(), Arc::downgrade(&places));
        places
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn families_take_turns_and_each_address_comes_once() {
        let read = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<SocketAddr>>();
        let found = read(&["[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8::1]:1", "192.0.2.1:1", "192.0.2.2:1"]);
        let all = ["[2001:db8::1]:1", "192.0.2.1:1", "[2001:db8::2]:1", "192.0.2.2:1"];
        assert_eq!(in_turns(&found, 8), read(&all));
        assert_eq!(in_turns(&found, 3), read(&all[..3]));
        assert_eq!(in_turns(&read(&["192.0.2.1:1", "[2001:db8::1]:1"]), 1), read(&["192.0.2.1:1"]));
        assert!(in_turns(&[], 8).is_empty());
    }

    #[tokio::test]
    async fn a_tenant_waits_for_itself_and_not_for_another() {
        let places = Places::new(3, 2);
        let held = [places.take("a").await.unwrap(), places.take("a").await.unwrap()];
        let mut third = std::pin::pin!(places.take("a"));
        assert!(third.as_mut().now_or_never().is_none());
        let other = places.take("b").await.unwrap();
        let mut beyond = std::pin::pin!(places.take("b"));
        assert!(beyond.as_mut().now_or_never().is_none(), "the node has three");
        drop(other);
        beyond.await.unwrap();
        drop(held);
        third.await.unwrap();
        places.take("c").await.unwrap();
        assert_eq!(places.tenants.lock().unwrap().len(), 1, "who resolves nothing is forgotten");
    }
}
