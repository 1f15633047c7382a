//! Reads server-sent events (WHATWG HTML, section 9.2) out of the pieces in which they come from the network. It never
//! gives an event that did not arrive whole.

/// What was read so far of a stream that may come over several connections.
#[derive(Debug, Default)]
pub(super) struct Reader {
    line: Vec<u8>,
    /// The last character was a carriage return: a line feed behind it belongs to it.
    after_return: bool,
    data: Vec<String>,
    id: Option<String>,
    last_seen: Option<String>,
}

impl Reader {
    /// The data of the events that this piece completes.
    pub(super) fn read(&mut self, piece: &[u8]) -> Vec<String> {
        let mut events = Vec::new();
        for byte in piece {
            let after_return = std::mem::replace(&mut self.after_return, *byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => {
                    let line = std::mem::take(&mut self.line);
                    events.extend(self.take(&String::from_utf8_lossy(&line)));
                }
                byte => self.line.push(*byte),
            }
        }
        events
    }

    /// Forgets what has not arrived whole: the connection is another one.
    pub(super) fn reconnect(&mut self) {
        *self = Self { last_seen: self.last_seen.take(), ..Self::default() };
    }

    /// The id behind which the stream goes on.
    pub(super) fn last_seen(&self) -> Option<&str> {
        self.last_seen.as_deref()
    }

    /// Takes one line; gives the data of an event that ends with it.
    fn take(&mut self, line: &str) -> Option<String> {
        if line.is_empty() {
            // An id without data tells only where to go on.
            if let Some(id) = self.id.take() {
                self.last_seen = Some(id).filter(|id| !id.is_empty());
            }
            let data = std::mem::take(&mut self.data);
            return (!data.is_empty()).then(|| data.join("\n"));
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => self.data.push(value.to_owned()),
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            // A comment, or what needs not be known here: the kind is in the data.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "retry: 1000\nid: a\n\n: heartbeat\n\nid: b\nevent: x\ndata: {\"ä\":1}\n\ndata:1\r\ndata: 2\r\n\r\nid: c\ndata: cut off";

    #[test]
    fn events_are_the_same_however_they_are_cut() {
        for size in 1..=TEXT.len() {
            let mut reader = Reader::default();
            let events: Vec<String> = TEXT.as_bytes().chunks(size).flat_map(|piece| reader.read(piece)).collect();
            assert_eq!(events, ["{\"ä\":1}", "1\n2"], "in pieces of {size}");
            assert_eq!(reader.last_seen(), Some("b"), "what was cut off was not seen");
        }
    }

    #[test]
    fn an_id_without_data_is_where_to_go_on() {
        let mut reader = Reader::default();
        assert!(reader.read(b"id: a\n\n").is_empty());
        assert_eq!(reader.last_seen(), Some("a"));
    }

    #[test]
    fn another_connection_begins_anew_behind_what_was_seen() {
        let mut reader = Reader::default();
        reader.read(b"id: a\ndata: 1\n\nid: b\ndata: 2\ndat");
        reader.reconnect();
        assert_eq!(reader.read(b"id: b\ndata: 3\n\n"), ["3"]);
        assert_eq!(reader.last_seen(), Some("b"));
    }
}
