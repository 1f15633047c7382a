//! One attempt's way to the outside: its keys, its checkpoint, its sends. It ends only after each of its sends is
//! settled or marked unknown.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;
use url::Url;
use uuid::Uuid;

use super::caller::Caller;
use super::egress::{Denial, Told};
use super::http_call::HttpCall;
use super::pace::{self, Meter};
use super::plan::{Effect, Means};
use super::provider::PinnedLookup;
use super::request::{Error, Identity, Lookup, Options, Refusal, Request, Response, Stop};
use super::resolver::Target;
use super::signals::Asked;
use super::slots::{Ambiguous, End, Slots};
use super::tenant_limits::TenantLimits;
use super::turns::{Turn, Turns};
use super::upload::{Upload, Written};
use super::{Gateway, answer, egress, flow, lookup, request, reserved, slots};
use crate::config::ms;
use crate::effect::OnUnknown;
use crate::key::{self, EffectId, InvalidName, Key};
use crate::policy::{Ceiling, Origin, Policy};
use crate::store;

/// The hold that a worker has on a run: until when, by this process's clock, and whether it was lost.
#[derive(Debug)]
pub struct Lease {
    pub record: store::lease::Lease,
    deadline_ms: AtomicU64,
    ended: CancellationToken,
    ending: OnceLock<Ending>,
}

/// Why an attempt is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The lease was lost, or could not be renewed in time.
    Lost,
    Drained,
    /// The run's owner wants it.
    Cancelled,
    Paused,
}

impl Lease {
    /// `deadline` was computed from a clock reading taken before the database was asked, so that it is never later than
    /// the lease's end there.
    pub fn new(record: store::lease::Lease, deadline: Duration) -> Arc<Self> {
        Arc::new(Self {
            record,
            deadline_ms: AtomicU64::new(millis(deadline)),
            ended: CancellationToken::new(),
            ending: OnceLock::new(),
        })
    }

    pub fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms.load(Ordering::Acquire))
    }

    pub fn renewed_until(&self, deadline: Duration) {
        self.deadline_ms.fetch_max(millis(deadline), Ordering::AcqRel);
    }

    /// Stops the attempt: its guest, its sockets, its claims. The first reason stands.
    pub fn end(&self, why: Ending) {
        self.ending.get_or_init(|| why);
        self.ended.cancel();
    }

    /// Why it is being stopped; none: it is not.
    pub fn ending(&self) -> Option<Ending> {
        self.ending.get().copied()
    }

    pub fn ended(&self) -> &CancellationToken {
        &self.ended
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Everything that is fixed for one attempt of one run.
#[derive(Debug)]
pub struct Attempt {
    pub(super) gateway: Arc<Gateway>,
    pub(super) lease: Arc<Lease>,
    pub(super) activity: String,
    pub(super) number: i32,
    pub(super) policy: Arc<Policy>,
    pub(super) run_key: Key,
    /// Cuts the sends under way: the guest is gone. A guest that is only asked to stop must not see its sends fail for that.
    pub(super) closing: CancellationToken,
    tasks: TaskTracker,
    slots: Mutex<Slots>,
    turns: Turns,
    /// The keys that were handed to the guest: it may put one into a request itself.
    pub(super) issued: Mutex<HashSet<String>>,
    pub(super) open: Mutex<HashSet<[u8; 32]>>,
    open_sends: AtomicUsize,
    max_open_sends: usize,
    pub(super) asked: Mutex<Asked>,
    pub(super) demand: Mutex<Option<Duration>>,
    told: Told,
}

impl Attempt {
    pub fn new(
        gateway: Arc<Gateway>,
        lease: Arc<Lease>,
        activity: String,
        number: i32,
        policy: Arc<Policy>,
        limits: &TenantLimits,
    ) -> Arc<Self> {
        let ceiling = gateway.config.max_open_sends;
        let least = policy.limits.open_sends.unwrap_or(u64::MAX).min(limits.open_sends.unwrap_or(u64::MAX));
        let max_open_sends = usize::try_from(least).unwrap_or(ceiling).min(ceiling);
        let run_key = key::run_key(&lease.record.tenant, lease.record.run_id);
        let closing = CancellationToken::new();
        Arc::new(Self {
            gateway,
            lease,
            activity,
            number,
            policy,
            run_key,
            closing,
            tasks: TaskTracker::new(),
            slots: Mutex::default(),
            turns: Turns::default(),
            issued: Mutex::default(),
            open: Mutex::default(),
            open_sends: AtomicUsize::new(0),
            max_open_sends,
            asked: Mutex::default(),
            demand: Mutex::default(),
            told: Told::default(),
        })
    }

    /// How long a provider that this attempt has called wants to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        let until = (*lock(&self.demand))?;
        until.checked_sub(self.gateway.clock.elapsed()).filter(|left| !left.is_zero())
    }

    pub fn run_id(&self) -> Uuid {
        self.lease.record.run_id
    }

    pub fn tenant(&self) -> &str {
        &self.lease.record.tenant
    }

    pub fn idempotency_key(&self) -> String {
        self.issue(self.run_key)
    }

    pub fn subkey(&self, name: &str) -> Result<String, InvalidName> {
        key::subkey(&self.run_key, name).map(|key| self.issue(key))
    }

    fn issue(&self, key: Key) -> String {
        let text = key.text();
        lock(&self.issued).insert(text.clone());
        text
    }

    /// True once the attempt is asked to stop.
    pub fn is_stopping(&self) -> bool {
        self.lease.ended().is_cancelled() || self.closing.is_cancelled()
    }

    /// Ends when the lease is over or given up.
    pub async fn stopped(&self) {
        self.lease.ended().cancelled().await;
    }

    /// Saves a checkpoint under the lease.
    pub async fn save_checkpoint(&self, state: &[u8]) -> Result<(), Stop> {
        let lease = &self.lease.record;
        let saved =
            store::checkpoint::save(&self.gateway.store, &lease.tenant, lease.run_id, lease.token, state).await?;
        if saved { Ok(()) } else { Err(Stop::LeaseOver) }
    }

    pub async fn load_checkpoint(&self) -> Result<Option<Vec<u8>>, Stop> {
        Ok(store::checkpoint::load(&self.gateway.store, self.tenant(), self.run_id()).await?)
    }

    /// Sends one request, or answers it from the ledger. What it starts goes on when the caller is dropped.
    pub async fn send(self: &Arc<Self>, request: Request, options: Options) -> Result<Response, Error> {
        self.send_for(request, options, None).await
    }

    /// The turn of a call that the guest makes now and whose request is not complete yet. None: it has no place.
    pub fn turn(&self, method: &str, url: &str) -> Option<Turn> {
        let url = Url::parse(url).ok()?;
        Some(self.turns.take(slots::place(method, &request::without_query(&url))))
    }

    /// Sends a request that was made at its turn and whose answer the guest may never look at: see [`Self::hand`]. Goes on,
    /// up to its end, when the caller is dropped.
    pub async fn send_at(
        self: &Arc<Self>,
        turn: Option<Turn>,
        mut request: Request,
        body: Written,
    ) -> Result<Response, Error> {
        let own = self.clone();
        self.spawn(async move {
            let _place = own.take_place()?;
            let gathered = tokio::select! {
                gathered = body.gather(&own.gateway.config) => gathered,
                () = own.closing.cancelled() => return Err(Stop::LeaseOver.into()),
            };
            (request.body, request.upload) = gathered.map_err(|why| Refusal::InvalidRequest(why.to_string()))?;
            let upload = request.upload.clone();
            let result = own.send_for(request, Options::default(), Some(Pending(turn))).await;
            if let (Err(_), Some(upload)) = (&result, upload) {
                own.swallow(upload);
            }
            result
        })
        .await
    }

    /// Reads what nobody needs any more: a guest that still writes sees why its call failed, and not a broken pipe.
    fn swallow(&self, upload: Upload) {
        let closing = self.closing.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                _ = upload.drain() => {}
                () = closing.cancelled() => {}
            }
        });
    }

    /// The guest has taken the answer that names this effect.
    pub fn hand(&self, effect: EffectId) {
        lock(&self.slots).hand(effect);
    }

    async fn send_for(
        self: &Arc<Self>,
        mut request: Request,
        mut options: Options,
        pending: Option<Pending>,
    ) -> Result<Response, Error> {
        reserved::take(&mut request, &mut options)?;
        let request = request::check(request, &options, &self.gateway.config)?;
        let limits = self.gateway.limits_of(self.tenant()).await?;
        let ceiling = limits.egress.as_ref();
        let origin = egress::authorise(&request.method, &request.url, &self.policy.egress, ceiling);
        let origin = origin.map_err(|denial| self.denied(denial))?;
        let profile = self.caller().profile_at(&origin).await?;
        let lookup = options.lookup.as_ref().map(|lookup| self.checked_lookup(lookup, ceiling)).transpose()?;
        let _place = if pending.is_none() { Some(self.take_place()?) } else { None };
        let at_most = request.connect.into_iter().chain(request.timeout).min().unwrap_or(Duration::MAX);
        let target = self.target(origin, at_most).await?;
        let call = HttpCall::new(request, profile, target, lookup);
        call.check_upload()?;
        if !call.is_effect(&options) {
            drop(pending);
            return self.spawn(read(self.clone(), call)).await;
        }
        let effect = self.planned(call, options)?;
        self.make(effect, pending).await
    }

    /// Where a call goes, unless the attempt ends before that is known.
    pub(super) async fn target(&self, origin: Origin, at_most: Duration) -> Result<Target, Error> {
        let resolver = &self.gateway.resolver;
        tokio::select! {
            target = resolver.target(self.tenant(), origin, &self.policy.egress, at_most) => {
                Ok(target.inspect_err(|refusal| self.told.note(refusal, self.tenant()))?)
            }
            () = self.closing.cancelled() => Err(Stop::LeaseOver.into()),
        }
    }

    fn planned(&self, call: HttpCall, options: Options) -> Result<Effect, Error> {
        let positional = matches!(options.identity, Identity::Positional);
        let own_name = if positional { call.own_name(self) } else { None };
        let (identity, issued_key) = match own_name {
            Some(own) if own.issued => (Identity::Named(own.name.clone()), Some(own.name)),
            Some(own) => (Identity::Named(own.name), None),
            None => (options.identity, None),
        };
        let on_unknown = options.on_unknown.or(self.policy.on_unknown).or(call.profile.on_unknown);
        Ok(Effect {
            identity,
            issued_key,
            provider: call.profile.name.0.clone(),
            account: self.caller().account_at(&call.profile),
            meter: Meter::of(&call.profile, &call.target.origin),
            profile_version: call.profile.version.clone(),
            method: call.request.method.to_string(),
            url: call.request.url_without_query(),
            digest: call.digest()?,
            streamed: call.request.upload.is_some(),
            on_unknown: on_unknown.unwrap_or(OnUnknown::Ask),
            means: Means::Http(Box::new(call)),
        })
    }

    /// Makes an effect, in a task of its own.
    pub(super) async fn make(self: &Arc<Self>, effect: Effect, pending: Option<Pending>) -> Result<Response, Error> {
        effect.means.check(self).await?;
        let Some(slot) = effect.slot() else {
            drop(pending);
            return self.spawn(flow::run(self.clone(), effect, 0)).await.0;
        };
        let may_be_unseen = pending.is_some();
        if let Some(Pending(Some(turn))) = &pending {
            turn.come().await;
        }
        let ordinal =
            lock(&self.slots).begin(&slot, effect.digest, effect.streamed).map_err(|why| ambiguous(&slot, why))?;
        drop(pending);
        let (result, end) = self.spawn(flow::run(self.clone(), effect, ordinal)).await;
        let end = if may_be_unseen && end == End::Handed { End::Answered } else { end };
        let effect = result.as_ref().ok().and_then(|response| response.effect_id);
        lock(&self.slots).end(&slot, end, effect);
        result
    }

    /// A look-up of the guest's, checked now so that it can be made later without the guest.
    fn checked_lookup(&self, lookup: &Lookup, ceiling: Option<&Ceiling>) -> Result<PinnedLookup, Refusal> {
        let pinned = lookup::pinned(lookup, &self.gateway.config)?;
        let (method, url) = (pinned.method_parsed(), pinned.url_parsed()?);
        let origin = egress::authorise(&method, &url, &self.policy.egress, ceiling);
        origin.map(|_| pinned).map_err(|denial| self.denied(denial))
    }

    /// What the guest is told of a denial. The log has it too, but only so often.
    pub(super) fn denied(&self, denial: Denial) -> Refusal {
        self.told.tell(denial, self.tenant())
    }

    pub(super) fn caller(&self) -> Caller<'_> {
        Caller { gateway: &self.gateway, tenant: self.tenant(), policy: &self.policy }
    }

    /// Its run's owner wants the attempt to rest.
    pub fn is_paused(&self) -> bool {
        self.lease.ending() == Some(Ending::Paused)
    }

    /// Waits until no send is under way, at most until the deadline and for as long as a send may take.
    pub async fn let_sends_end(&self, deadline: tokio::time::Instant) {
        self.tasks.close();
        let longest = tokio::time::Instant::now() + ms(self.gateway.config.max_send_ms);
        let lost = async {
            match self.lease.ending() {
                Some(_) => std::future::pending().await,
                None => self.stopped().await,
            }
        };
        tokio::select! {
            () = self.tasks.wait() => {}
            () = tokio::time::sleep_until(deadline.min(longest)) => {}
            () = lost => {}
        }
    }

    /// Ends all sends that are still under way and waits until each is settled or marked unknown.
    pub async fn close(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    pub(super) fn take_place(self: &Arc<Self>) -> Result<Place, Refusal> {
        let limit = self.max_open_sends;
        let place = Place(self.clone());
        if self.open_sends.fetch_add(1, Ordering::AcqRel) < limit {
            return Ok(place);
        }
        Err(Refusal::InvalidRequest(format!("this attempt has {limit} calls under way, which is the limit")))
    }

    /// Runs a call in a task of its own: a guest that goes away cannot lose what it has begun.
    async fn spawn<F>(&self, call: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let own = (self.gateway.clone(), self.tenant().to_owned());
        let call = call.in_current_span();
        let call = async move { own.0.threads().run(&own.1, call).await };
        match self.tasks.spawn(call).await {
            Ok(Some(result)) => result,
            // The node is gone, and with it whoever waits.
            Ok(None) => std::future::pending().await,
            Err(failed) => std::panic::resume_unwind(failed.into_panic()),
        }
    }
}

async fn read(attempt: Arc<Attempt>, call: HttpCall) -> Result<Response, Error> {
    let meter = Meter::of(&call.profile, &call.target.origin);
    let account = attempt.caller().account_at(&call.profile);
    pace::admit_read(&attempt, &meter, &account).await?;
    let sent = call.read(&attempt).await?;
    pace::heed(&attempt, &meter, &account, &sent).await;
    answer::shown(sent, "original", None, &attempt.gateway.config)
}

/// A call that goes on without its caller, with its turn until it is counted.
pub(super) struct Pending(Option<Turn>);

/// One of the attempt's places for calls under way.
pub(super) struct Place(Arc<Attempt>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.open_sends.fetch_sub(1, Ordering::AcqRel);
    }
}

fn ambiguous(slot: &str, why: Ambiguous) -> Refusal {
    let why = match why {
        Ambiguous::Overlapping => "a call there is still under way",
        Ambiguous::Different => "the outcome of the call before it is open, and this one is different",
    };
    Refusal::EffectMismatch(format!("{slot}: {why}; give each effect a name, so that it can be told from the others"))
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
