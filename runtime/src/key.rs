//! Derivation of every key: run keys, subkeys, effect ids, wire keys and the seed of a run's random numbers.
//!
//! Pure: no I/O, no clock, nothing random. No key may ever contain an attempt number, a worker, a host name or a time.
//! A change to a derivation is a breaking change and needs a new context string; the vectors in
//! `guest-sdk/key-vectors.json` hold it.

use std::fmt;

use uuid::Uuid;

const RUN_KEY: &str = "deedbox 2026 run key";
const SUBKEY: &str = "deedbox 2026 subkey";
const BUSINESS_EFFECT: &str = "deedbox 2026 business effect";
const NAMED_EFFECT: &str = "deedbox 2026 named effect";
const POSITIONAL_EFFECT: &str = "deedbox 2026 positional effect";
const HOOK_SIGNAL: &str = "deedbox 2026 hook signal";
const WIRE_KEY: &str = "deedbox 2026 wire key";
const RANDOM_SEED: &str = "deedbox 2026 random seed";
const REQUEST_RECORD: &str = "deedbox 2026 request record";

/// The longest subkey name, effect name, operation or business key, in bytes of UTF-8.
pub const MAX_NAME_BYTES: usize = 256;

/// The shortest key that a truncating rendering may make, in bits.
pub const MIN_KEY_BITS: usize = 96;

/// A derived key: 256 bits, shown as a version 8 UUID of its first 128.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key([u8; 32]);

impl Key {
    /// The text form: 36 characters, lower-case hexadecimal digits and `-` (RFC 9562, version 8).
    pub fn text(&self) -> String {
        Uuid::new_v8(self.first_128_bits()).hyphenated().to_string()
    }

    /// The text in which a provider wants to see this key.
    pub fn render(&self, rendering: Rendering) -> String {
        match rendering {
            Rendering::Uuid => self.text(),
            Rendering::Hex => hex(&self.first_128_bits()),
            Rendering::Base32Hex => data_encoding::BASE32HEX_NOPAD.encode(&self.first_128_bits()).to_ascii_lowercase(),
            Rendering::TruncatedHex(digits) => hex(&self.0)[..digits.get()].to_owned(),
        }
    }

    fn first_128_bits(&self) -> [u8; 16] {
        let mut half = [0; 16];
        half.copy_from_slice(&self.0[..16]);
        half
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.text())
    }
}

/// How a provider wants a key to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rendering {
    /// 36 characters, `0-9a-f-`.
    Uuid,
    /// 32 characters, `0-9a-f`.
    Hex,
    /// 26 characters, `0-9a-v`, as RFC 4648 section 7 in lower case, unpadded.
    Base32Hex,
    /// The first hexadecimal digits, as many as the provider takes.
    TruncatedHex(HexDigits),
}

/// A count of hexadecimal digits that still makes a key of at least [`MIN_KEY_BITS`]: 24 to 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HexDigits(u8);

impl HexDigits {
    /// `None` when the count would make a key too short to be unique, or is more than a hash has.
    pub fn new(digits: usize) -> Option<Self> {
        let enough = digits * 4 >= MIN_KEY_BITS && digits <= 64;
        enough.then_some(Self(digits as u8))
    }

    fn get(self) -> usize {
        usize::from(self.0)
    }
}

/// The identity of an effect: 256 bits, shown as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct EffectId(pub [u8; 32]);

impl fmt::Display for EffectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for EffectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EffectId({self})")
    }
}

impl std::str::FromStr for EffectId {
    type Err = InvalidEffectId;

    fn from_str(text: &str) -> Result<Self, InvalidEffectId> {
        let bytes = data_encoding::HEXLOWER.decode(text.as_bytes()).map_err(|_| InvalidEffectId)?;
        Ok(Self(bytes.try_into().map_err(|_| InvalidEffectId)?))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("an effect id is 64 lower-case hexadecimal digits")]
pub struct InvalidEffectId;

/// The provider in an effect's identity: the profile's name and the account, never the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProviderAccount<'a> {
    pub profile: &'a str,
    pub account: &'a str,
}

/// What tells one effect from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity<'a> {
    /// The business operation itself: no run, no activity, no ordinal.
    Business { operation: &'a str, key: &'a str },
    /// A name that is unique in the run.
    Named { run_id: Uuid, activity: &'a str, name: &'a str },
    /// The place of the call (`METHOD origin/path`) and its order there within one attempt, from 0.
    Positional { run_id: Uuid, activity: &'a str, slot: &'a str, ordinal: u32 },
}

/// Why a name cannot be part of a key.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a name in a key is 1 to {MAX_NAME_BYTES} bytes of UTF-8; this one has {0}")]
pub struct InvalidName(pub usize);

/// Checks a subkey name, effect name, operation or business key.
pub fn check_name(name: &str) -> Result<(), InvalidName> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES { Err(InvalidName(name.len())) } else { Ok(()) }
}

/// The key that `idempotency-key()` hands to a run.
pub fn run_key(tenant: &str, run_id: Uuid) -> Key {
    Key(derive(RUN_KEY, &[tenant.as_bytes(), run_text(run_id).as_bytes()]))
}

/// The key that `subkey(name)` hands to a run.
pub fn subkey(run_key: &Key, name: &str) -> Result<Key, InvalidName> {
    check_name(name)?;
    Ok(Key(derive(SUBKEY, &[&run_key.0, name.as_bytes()])))
}

/// The one identity of an effect.
pub fn effect_id(tenant: &str, provider: ProviderAccount<'_>, identity: Identity<'_>) -> EffectId {
    let tenant = tenant.as_bytes();
    let (profile, account) = (provider.profile.as_bytes(), provider.account.as_bytes());
    EffectId(match identity {
        Identity::Business { operation, key } => {
            derive(BUSINESS_EFFECT, &[tenant, profile, account, operation.as_bytes(), key.as_bytes()])
        }
        Identity::Named { run_id, activity, name } => {
            let run = run_text(run_id);
            derive(NAMED_EFFECT, &[tenant, run.as_bytes(), activity.as_bytes(), profile, account, name.as_bytes()])
        }
        Identity::Positional { run_id, activity, slot, ordinal } => {
            let (run, ordinal) = (run_text(run_id), ordinal.to_le_bytes());
            let fields = [tenant, run.as_bytes(), activity.as_bytes(), profile, account, slot.as_bytes(), &ordinal];
            derive(POSITIONAL_EFFECT, &fields)
        }
    })
}

/// The key that a provider receives for an effect.
pub fn wire_key(effect_id: &EffectId) -> Key {
    Key(derive(WIRE_KEY, &[&effect_id.0]))
}

/// The key under which a signal of a hook counts in its run. Two hooks whose senders number alike do not meet.
pub fn hook_signal(hook: &str, delivery_id: &str) -> String {
    format!("hook-{}", hex(&derive(HOOK_SIGNAL, &[hook.as_bytes(), delivery_id.as_bytes()])))
}

/// The seed of the run's random numbers: the same in every attempt, and unknown without the deployment's secret.
pub fn random_seed(secret: &[u8; 32], tenant: &str, run_id: Uuid) -> [u8; 32] {
    derive(RANDOM_SEED, &[secret, tenant.as_bytes(), run_text(run_id).as_bytes()])
}

/// Names what was answered to a request: the tenant, the operation, the values in its path, and the caller's own key.
pub fn request_record(fields: &[&str]) -> [u8; 32] {
    let fields: Vec<&[u8]> = fields.iter().map(|field| field.as_bytes()).collect();
    derive(REQUEST_RECORD, &fields)
}

fn run_text(run_id: Uuid) -> String {
    run_id.hyphenated().to_string()
}

fn derive(context: &str, fields: &[&[u8]]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    for field in fields {
        // Every field is a name, an id or a key: far below the 4 GiB that the length prefix can hold.
        hasher.update(&(field.len() as u32).to_le_bytes());
        hasher.update(field);
    }
    *hasher.finalize().as_bytes()
}

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}
