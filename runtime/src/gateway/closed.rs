//! A closed world: where calls go when nothing may leave the machine. `deedbox verify` makes one; a node that serves has none,
//! and no setting gives it one. It decides nothing but addresses: what is allowed, claimed, keyed and recorded stays as it is.

use std::fmt::Debug;
use std::net::SocketAddr;

use crate::policy::Origin;

/// Where the calls to an origin go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lead {
    /// To a stand-in at this address, over plain HTTP. The Host header is the origin's.
    To(SocketAddr),
    /// Nowhere: the guest finds it unreachable.
    Nowhere,
    /// To the origin itself.
    Outside,
}

/// The stand-ins of a world.
pub trait ClosedWorld: Debug + Send + Sync {
    fn lead(&self, origin: &Origin) -> Lead;
}
