//! Master keys, which are not in the database. One wraps the keys that are; others may still be needed to open what they have
//! wrapped. They seal nothing else, but open what versions before the data keys have sealed with them directly.

use std::fmt;
use std::path::{Path, PathBuf};

use zeroize::{Zeroize, Zeroizing};

use super::Error;
use super::sealing::{KEY_BYTES, SealingKey};
use crate::store::sealing_key::Wrapped;

/// A master key.
#[derive(Clone)]
pub struct MasterKey(SealingKey);

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MasterKey({})", self.id())
    }
}

impl MasterKey {
    /// Reads a key: 64 hexadecimal digits, or the base64 of 32 bytes. None for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().as_bytes();
        let is_hex = text.len() == 2 * KEY_BYTES;
        let encoding = if is_hex { data_encoding::HEXLOWER_PERMISSIVE } else { data_encoding::BASE64 };
        let bytes = Zeroizing::new(encoding.decode(text).ok()?);
        SealingKey::of(bytes).map(Self)
    }

    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|e| Error::ReadKey(path.to_owned(), e))?;
        Self::parse(&Zeroizing::new(text)).ok_or_else(|| Error::KeyFormat(format!("in the file {}", path.display())))
    }

    /// Reads the key, or makes one in a file that only its owner can read.
    pub fn read_or_create(path: &Path) -> Result<Self, Error> {
        match Self::create(path) {
            Ok(key) => Ok(key),
            Err(Error::WriteKey(_, e)) if e.kind() == std::io::ErrorKind::AlreadyExists => Self::read(path),
            Err(error) => Err(error),
        }
    }

    fn create(path: &Path) -> Result<Self, Error> {
        use std::io::Write;
        use std::os::unix::fs::OpenOptionsExt;
        let failed = |e| Error::WriteKey(PathBuf::from(path), e);
        let key = SealingKey::random();
        let mut file =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
        let text = Zeroizing::new(data_encoding::HEXLOWER.encode(key.bytes()));
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        Ok(Self(key))
    }

    /// Names the key without giving it away: 16 hexadecimal digits.
    pub fn id(&self) -> String {
        let id = self.0.derived("deedbox 2026 master key id", &[]);
        data_encoding::HEXLOWER.encode(&id.bytes()[..8])
    }

    /// The key as a row that nobody can move to another place.
    pub(super) fn wrap(&self, tenant: &str, purpose: &str, number: i32, key: &SealingKey) -> Wrapped {
        Wrapped {
            tenant: tenant.to_owned(),
            purpose: purpose.to_owned(),
            number,
            master_id: self.id(),
            wrapped: self.wrapping().seal(&place(tenant, purpose, number), key.bytes()),
        }
    }

    /// None when the row was changed or moved.
    pub(super) fn unwrapped(&self, row: &Wrapped) -> Option<SealingKey> {
        let opened = self.wrapping().open(&place(&row.tenant, &row.purpose, row.number), &row.wrapped)?;
        SealingKey::of(opened)
    }

    /// Apart from the key that sealed directly, so that neither opens what is the other's.
    fn wrapping(&self) -> SealingKey {
        self.0.derived("deedbox 2026 wrapping key", &[])
    }

    /// What versions before the data keys had in the place of the fleet's key for this purpose.
    pub(super) fn founding(&self, context: &str) -> SealingKey {
        self.0.derived(context, &[])
    }

    /// A secret as versions before the data keys have sealed it.
    pub(super) fn open_secret(&self, tenant: &str, name: &str, sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        self.0.open(format!("{tenant}\0{name}").as_bytes(), sealed)
    }

    /// An answer or a look-up as those versions have sealed it.
    pub(super) fn open_value(&self, tenant: &str, id: &[u8], place: &str, sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let key = self.0.derived("deedbox 2026 tenant key", tenant.as_bytes());
        key.open(&[id, place.as_bytes()].concat(), sealed)
    }
}

fn place(tenant: &str, purpose: &str, number: i32) -> Vec<u8> {
    format!("{tenant}\0{purpose}\0{number}").into_bytes()
}

/// The master keys that a node is given.
#[derive(Clone, Debug)]
pub struct MasterKeys {
    current: MasterKey,
    others: Vec<MasterKey>,
}

impl MasterKeys {
    pub fn new(current: MasterKey, others: Vec<MasterKey>) -> Self {
        Self { current, others }
    }

    /// The one that wraps.
    pub fn current(&self) -> &MasterKey {
        &self.current
    }

    /// All that open.
    pub fn all(&self) -> impl Iterator<Item = &MasterKey> {
        std::iter::once(&self.current).chain(&self.others)
    }

    pub(super) fn named(&self, id: &str) -> Option<&MasterKey> {
        self.all().find(|key| key.id() == id)
    }

    /// The key of that id; `what` is what it is needed for.
    pub(super) fn needed(&self, what: &str, id: &str) -> Result<&MasterKey, Error> {
        let missing = || Error::MissingMaster {
            what: what.to_owned(),
            needed: id.to_owned(),
            given: self.all().map(MasterKey::id).collect::<Vec<_>>().join(", "),
        };
        self.named(id).ok_or_else(missing)
    }

    /// The key of a row.
    pub(super) fn unwrapped(&self, row: &Wrapped) -> Result<SealingKey, Error> {
        let what = format!("the {} key {} of `{}`", row.purpose, row.number, row.tenant);
        let key = self.needed(&what, &row.master_id)?.unwrapped(row);
        key.ok_or(Error::Tampered(what))
    }
}

impl From<MasterKey> for MasterKeys {
    fn from(key: MasterKey) -> Self {
        Self::new(key, Vec::new())
    }
}

/// A key as text, read from where it may have been longer.
pub fn parse_text(bytes: &mut Zeroizing<Vec<u8>>, from: &str) -> Result<MasterKey, Error> {
    let key = std::str::from_utf8(bytes).ok().and_then(MasterKey::parse);
    bytes.zeroize();
    key.ok_or_else(|| Error::KeyFormat(from.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_in_both_forms_and_in_no_other() {
        let hex = "AB".repeat(32);
        let base64 = data_encoding::BASE64.encode(&[0xab; 32]);
        let id = MasterKey::parse(&hex).unwrap().id();
        assert_eq!(MasterKey::parse(&format!(" {base64}\n")).unwrap().id(), id);
        assert_eq!(id.len(), 16);
        for bad in ["", "ab", &hex[2..], &format!("{hex}ab"), &base64[1..], &"zz".repeat(32)] {
            assert!(MasterKey::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_wrapped_key_opens_only_in_its_place() {
        let (master, key) = (MasterKey(SealingKey::random()), SealingKey::random());
        let row = master.wrap("acme", "data", 1, &key);
        assert_eq!(master.unwrapped(&row).unwrap().bytes(), key.bytes());
        let moved = [
            Wrapped { tenant: "globex".to_owned(), ..row.clone() },
            Wrapped { purpose: "random".to_owned(), ..row.clone() },
            Wrapped { number: 2, ..row.clone() },
        ];
        assert!(moved.iter().all(|row| master.unwrapped(row).is_none()));
        assert!(MasterKey(SealingKey::random()).unwrapped(&row).is_none());
    }

    #[test]
    fn a_master_key_that_is_not_given_is_named_with_the_way_out() {
        let keys = MasterKeys::from(MasterKey(SealingKey::random()));
        let error = keys.needed("the data key 1 of `acme`", "0123456789abcdef").unwrap_err().to_string();
        let given = keys.current().id();
        for word in ["0123456789abcdef", given.as_str(), "--other-master-key-file", "deedbox key rotate"] {
            assert!(error.contains(word), "{word}: {error}");
        }
    }

    /// What these contexts give is in use: it must never change.
    #[test]
    fn derived_keys_are_those_of_the_first_version() {
        let bytes = [7; 32];
        let master = MasterKey(SealingKey::of(Zeroizing::new(bytes.to_vec())).unwrap());
        let context = "deedbox 2026 random secret";
        assert_eq!(*master.founding(context).array(), blake3::derive_key(context, &bytes));
        let id = blake3::derive_key("deedbox 2026 master key id", &bytes);
        assert_eq!(master.id(), data_encoding::HEXLOWER.encode(&id[..8]));
    }
}
