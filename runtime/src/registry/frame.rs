//! What the compiling process says on its standard output: a greeting before it reads, then one answer. The reader must never
//! take more memory than its limit, whatever is written.

use std::io::{self, Write};

use tokio::io::{AsyncRead, AsyncReadExt};

/// Marks the form of what follows it.
const GREETING: &[u8; 8] = b"ddb-cc-1";

const CODE: u8 = 1;
const REFUSED: u8 = 2;
const NO_MEMORY: u8 = 3;

/// Bytes of the words of a refusal; what is longer is cut.
const MAX_WORDS: usize = 4096;

#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// Compiled code.
    Code(Vec<u8>),
    /// Why the component cannot be compiled.
    Refused(String),
    /// The memory that was allowed did not suffice.
    NoMemory,
}

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Broken {
    /// It did not greet: another program, or one that did not get as far.
    NoGreeting,
    /// It greeted as one whose code cannot be used here.
    OtherVersion,
    /// It ended without an answer.
    NoAnswer,
    /// The code is larger than may be.
    TooLarge,
}

/// Says that the component is awaited, and for which engines it will be compiled.
pub fn greet(to: &mut impl Write, compatibility: u64) -> io::Result<()> {
    to.write_all(GREETING)?;
    to.write_all(&compatibility.to_le_bytes())?;
    to.flush()
}

pub fn answer(to: &mut impl Write, answer: &Answer) -> io::Result<()> {
    let (kind, payload) = match answer {
        Answer::Code(code) => (CODE, &code[..]),
        Answer::Refused(words) => (REFUSED, &words.as_bytes()[..words.floor_char_boundary(MAX_WORDS)]),
        Answer::NoMemory => (NO_MEMORY, &[][..]),
    };
    to.write_all(&[kind])?;
    to.write_all(&(payload.len() as u64).to_le_bytes())?;
    to.write_all(payload)?;
    to.flush()
}

/// Reads both. `max_code`: bytes.
pub async fn read(from: &mut (impl AsyncRead + Unpin), compatibility: u64, max_code: usize) -> Result<Answer, Broken> {
    let greeting: [u8; 8] = read_exact(from).await.ok_or(Broken::NoGreeting)?;
    if greeting != *GREETING {
        return Err(Broken::NoGreeting);
    }
    let for_engine = read_exact(from).await.ok_or(Broken::NoGreeting)?;
    if u64::from_le_bytes(for_engine) != compatibility {
        return Err(Broken::OtherVersion);
    }
    let [kind] = read_exact(from).await.ok_or(Broken::NoAnswer)?;
    let length = u64::from_le_bytes(read_exact(from).await.ok_or(Broken::NoAnswer)?);
    let max = if kind == CODE { max_code } else { MAX_WORDS };
    let length = usize::try_from(length).ok().filter(|length| *length <= max).ok_or(Broken::TooLarge)?;
    let mut payload = vec![0; length];
    from.read_exact(&mut payload).await.map_err(|_| Broken::NoAnswer)?;
    match kind {
        CODE => Ok(Answer::Code(payload)),
        REFUSED => Ok(Answer::Refused(String::from_utf8_lossy(&payload).into_owned())),
        NO_MEMORY => Ok(Answer::NoMemory),
        _ => Err(Broken::NoAnswer),
    }
}

async fn read_exact<const N: usize>(from: &mut (impl AsyncRead + Unpin)) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes).await.ok().map(|_| bytes)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const ENGINE: u64 = 7;

    fn said(what: &Answer) -> Vec<u8> {
        let mut said = Vec::new();
        greet(&mut said, ENGINE).unwrap();
        answer(&mut said, what).unwrap();
        said
    }

    fn heard(mut said: &[u8], max_code: usize) -> Result<Answer, Broken> {
        read(&mut said, ENGINE, max_code).now_or_never().unwrap()
    }

    #[test]
    fn what_is_said_is_heard() {
        let all = [Answer::Code(vec![1; 100]), Answer::Refused("it is wrong".to_owned()), Answer::NoMemory];
        for answer in all {
            assert_eq!(heard(&said(&answer), 100), Ok(answer));
        }
        let long = "ü".repeat(MAX_WORDS);
        let Ok(Answer::Refused(words)) = heard(&said(&Answer::Refused(long.clone())), 0) else { panic!() };
        assert!(words.len() <= MAX_WORDS && long.starts_with(&words));
    }

    #[test]
    fn what_is_cut_is_no_answer() {
        let whole = said(&Answer::Code(vec![1; 100]));
        for end in 0..whole.len() {
            let expected = if end < 16 { Broken::NoGreeting } else { Broken::NoAnswer };
            assert_eq!(heard(&whole[..end], 100), Err(expected), "{end}");
        }
    }

    #[test]
    fn a_length_is_checked_before_anything_is_kept() {
        assert_eq!(heard(&said(&Answer::Code(vec![1; 101])), 100), Err(Broken::TooLarge));
        let mut lying = said(&Answer::Code(Vec::new()));
        let at = lying.len() - 8;
        lying[at..].fill(0xff);
        assert_eq!(heard(&lying, 100), Err(Broken::TooLarge));
        let mut words = said(&Answer::Refused(String::new()));
        let at = words.len() - 8;
        words[at..].copy_from_slice(&(MAX_WORDS as u64 + 1).to_le_bytes());
        assert_eq!(heard(&words, usize::MAX), Err(Broken::TooLarge));
    }

    #[test]
    fn another_program_and_another_version_are_told_apart() {
        assert_eq!(heard(b"running 3 tests\n\n\n", 100), Err(Broken::NoGreeting));
        let mut other = said(&Answer::NoMemory);
        other[8] ^= 1;
        assert_eq!(heard(&other, 100), Err(Broken::OtherVersion));
        let mut unknown = said(&Answer::NoMemory);
        unknown[16] = 9;
        assert_eq!(heard(&unknown, 100), Err(Broken::NoAnswer));
    }
}
