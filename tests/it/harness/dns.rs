//! A name server that says what a test wants, over UDP and with a time to live of zero, and remembers what it was asked.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::rdata::CNAME;
use hickory_proto::rr::{Name, RData, Record, RecordType};
use tokio::net::UdpSocket;

/// What is said about a name.
#[derive(Clone, Debug)]
pub enum Says {
    Addresses(Vec<IpAddr>),
    AliasOf(&'static str),
    NoSuchName,
    /// No answer ever comes.
    Nothing,
}

impl Says {
    pub fn at(addresses: &[&str]) -> Self {
        Self::Addresses(addresses.iter().map(|address| address.parse().unwrap()).collect())
    }
}

pub struct NameServer {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<(String, RecordType)>>>,
}

impl NameServer {
    /// `says` gets a name in lower case, without a dot at its end, and how often it was asked about before in this way.
    pub async fn start(says: impl Fn(&str, usize) -> Says + Send + 'static) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let server = Self { address, asked: asked.clone() };
        tokio::spawn(async move {
            let mut buffer = vec![0; 4096];
            loop {
                let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
                let query = Message::from_vec(&buffer[..length]).unwrap();
                let (name, kind) = asked_for(&query);
                let before = note(&asked, &name, kind);
                if let Some(answer) = answer(query, kind, says(&name, before)) {
                    socket.send_to(&answer.to_vec().unwrap(), from).await.unwrap();
                }
            }
        });
        server
    }

    /// All names that it was asked about, in their order, once for each question.
    pub fn names(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|(name, _)| name.clone()).collect()
    }

    /// How often it was asked for the IPv4 addresses of a name.
    pub fn asked_for(&self, name: &str) -> usize {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|(own, kind)| own == name && *kind == RecordType::A).count()
    }
}

fn asked_for(query: &Message) -> (String, RecordType) {
    let question = &query.queries[0];
    let name = question.name().to_ascii().to_lowercase();
    (name.trim_end_matches('.').to_owned(), question.query_type())
}

fn note(asked: &Mutex<Vec<(String, RecordType)>>, name: &str, kind: RecordType) -> usize {
    let mut asked = asked.lock().unwrap();
    let before = asked.iter().filter(|(own, of)| own == name && *of == kind).count();
    asked.push((name.to_owned(), kind));
    before
}

fn answer(query: Message, kind: RecordType, says: Says) -> Option<Message> {
    let name = query.queries[0].name().clone();
    let mut answer = query.into_response();
    answer.metadata.recursion_available = true;
    let record = |data: RData| Record::from_rdata(name.clone(), 0, data);
    match says {
        Says::Addresses(addresses) => {
            let asked = |ip: &IpAddr| kind == if ip.is_ipv4() { RecordType::A } else { RecordType::AAAA };
            answer.answers.extend(addresses.into_iter().filter(asked).map(|ip| record(RData::from(ip))));
        }
        Says::AliasOf(other) => {
            let other = Name::from_ascii(format!("{other}.")).unwrap();
            answer.answers.push(record(RData::CNAME(CNAME(other))));
        }
        Says::NoSuchName => answer.metadata.response_code = ResponseCode::NXDomain,
        Says::Nothing => return None,
    }
    Some(answer)
}
