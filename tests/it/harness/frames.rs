//! The frames of PostgreSQL's protocol, as far as somebody in between must know them: where each message ends, and of
//! what kind it is. Nothing is read of what a message says.

/// The bytes of a length, which counts itself.
const LENGTH: usize = 4;

/// One direction of a connection that is in the clear from its first byte.
#[derive(Debug, Default)]
pub struct Frames {
    /// The first message of a client has no kind.
    untyped: bool,
    head: Vec<u8>,
    kind: u8,
    left: usize,
}

/// The end of a message: its kind, and where the next one begins in the bytes that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub end: usize,
}

impl Frames {
    pub fn of_client() -> Self {
        Self { untyped: true, ..Self::default() }
    }

    pub fn of_server() -> Self {
        Self::default()
    }

    /// The messages that end in these bytes, which follow those that were read before.
    pub fn read(&mut self, bytes: &[u8]) -> Vec<Frame> {
        let mut frames = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            if self.left == 0 {
                self.head.push(bytes[at]);
                at += 1;
                if !self.has_head() {
                    continue;
                }
            } else {
                let step = self.left.min(bytes.len() - at);
                self.left -= step;
                at += step;
            }
            if self.left == 0 {
                frames.push(Frame { kind: self.kind, end: at });
            }
        }
        frames
    }

    /// Takes the head of a message once it is whole.
    fn has_head(&mut self) -> bool {
        let kind = usize::from(!self.untyped);
        if self.head.len() < kind + LENGTH {
            return false;
        }
        let length = u32::from_be_bytes(self.head[kind..].try_into().unwrap());
        self.left = (length as usize).saturating_sub(LENGTH);
        self.kind = if self.untyped { 0 } else { self.head[0] };
        self.untyped = false;
        self.head.clear();
        true
    }
}

#[test]
fn messages_are_told_apart_however_they_are_cut() {
    let mut said = vec![0, 0, 0, 9, 1, 2, 3, 4, 5];
    said.extend([b'Q', 0, 0, 0, 6, b'x', 0]);
    said.extend([b'S', 0, 0, 0, 4]);
    let kinds = |chunk: usize| {
        let mut frames = Frames::of_client();
        let found = said.chunks(chunk).enumerate().map(|(i, bytes)| (i * chunk, frames.read(bytes)));
        found.flat_map(|(from, found)| found.into_iter().map(move |f| (f.kind, from + f.end))).collect::<Vec<_>>()
    };
    for chunk in 1..=said.len() {
        assert_eq!(kinds(chunk), [(0, 9), (b'Q', 16), (b'S', 21)], "in chunks of {chunk}");
    }
}
