//! Ids as the specification has them: bound to their tenant, `TENANT/OPAQUE`, and on the wire one path segment in which
//! every byte outside `A-Z a-z 0-9 . _ -` is `~HH`. An id of another tenant is refused before anything is looked for.

use std::fmt::Write;

use uuid::Uuid;

use crate::api::error::{Problem, Result};
use crate::api::name;

/// The id of something of a tenant.
pub fn bound(tenant: &str, opaque: impl std::fmt::Display) -> String {
    format!("{tenant}/{opaque}")
}

/// The path of a run.
pub fn path(tenant: &str, run_id: Uuid) -> String {
    format!("/runs/{}", project(&bound(tenant, run_id)))
}

/// The one segment that stands for an id in a path.
pub fn project(id: &str) -> String {
    id.bytes().fold(String::with_capacity(id.len()), |mut segment, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-') {
            segment.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(segment, "~{byte:02X}");
        }
        segment
    })
}

/// The run that a segment names, with its id in full. Percent signs were undone by whoever took the path apart.
pub fn run(segment: &str, tenant: &str) -> Result<Uuid> {
    of_tenant(&unproject(segment)?, tenant)
}

/// The run that an id names.
pub fn of_tenant(id: &str, tenant: &str) -> Result<Uuid> {
    let (owner, opaque) = id.split_once('/').ok_or_else(|| {
        Problem::validation("runId: must be an id as this host gave it, TENANT/ID, in a path as TENANT~2FID")
    })?;
    if owner != tenant {
        return Err(Problem::tenant_mismatch());
    }
    name::uuid(opaque).ok_or_else(unknown)
}

pub fn unknown() -> Problem {
    Problem::not_found("run")
}

/// Undoes the projection of an id. No id has a `~` of its own.
pub(crate) fn unproject(segment: &str) -> Result<String> {
    let wrong = || Problem::validation("runId: each ~ must be followed by two upper-case hexadecimal digits");
    let mut parts = segment.split('~');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.as_bytes().split_at_checked(2).ok_or_else(wrong)?;
        bytes.extend(data_encoding::HEXUPPER.decode(digits).map_err(|_| wrong())?);
        bytes.extend_from_slice(rest);
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_projected_id_is_read_back() {
        assert_eq!(unproject("acme~2Fr-9f3c").unwrap(), "acme/r-9f3c");
        assert_eq!(unproject("acme/r-9f3c").unwrap(), "acme/r-9f3c");
        assert_eq!(unproject("~C3~A4~2F").unwrap(), "ä/");
        for wrong in ["acme~", "acme~2", "acme~2f", "acme~zz", "~~2F", "~FF", "~ä"] {
            assert!(unproject(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_run_is_named_by_its_whole_id_in_its_one_spelling() {
        let run_id = Uuid::now_v7();
        let segment = project(&bound("acme", run_id));
        assert_eq!(path("acme", run_id), format!("/runs/acme~2F{run_id}"));
        assert_eq!(run(&segment, "acme").unwrap(), run_id);
        assert_eq!(run(&bound("acme", run_id), "acme").unwrap(), run_id);
        let refused = |segment: &str| format!("{:?}", run(segment, "acme").unwrap_err());
        assert!(refused(&run_id.to_string()).contains("TENANT~2FID"), "an id without its tenant names nothing");
        assert!(refused(&format!("other~2F{run_id}")).contains("TenantMismatch"));
        assert!(refused("other~2Fx").contains("TenantMismatch"), "whether or not the rest could be an id");
        assert!(refused(&format!("acme~2F{}", run_id.simple())).contains("NotFound"));
    }

    proptest! {
        #[test]
        fn every_id_has_one_projection_that_leads_back(id in "\\PC{0,80}") {
            let segment = project(&id);
            prop_assert!(segment.bytes().all(|c| c.is_ascii_alphanumeric() || b"._-~".contains(&c)), "{}", segment);
            prop_assert_eq!(unproject(&segment).unwrap(), id);
        }
    }
}
