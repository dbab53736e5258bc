//! An independent maker and judge of DKIM signatures: dkimpy, in one Python process for many messages.
//!
//! It asks no DNS: the records to believe come with each message. The process ends with the value that
//! started it. Panics with a sentence where dkimpy cannot be had: a test that needs it must not pass without.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use base64::{Engine, prelude::BASE64_STANDARD};

use crate::python::interpreter;

const VERSION: &str = "1.1.8";
/// PyNaCl is what it verifies Ed25519 with; dnspython is imported and never asked.
const PACKAGES: [&str; 3] = ["dkimpy==1.1.8", "dnspython==2.9.2", "pynacl==1.6.2"];

/// A line in: the message, then names and contents of records, all in base64. A line out: what dkimpy says of
/// each signature, from the top; it has no word for why a signature is wrong but for its body. Or a line in:
/// `sign` and a message; a line out: its signature by the fields that dkimpy signs by default, each octet of
/// them as it is, and the public key.
const PROGRAM: &str = r#"
import sys, base64, dkim, nacl.signing
SEED = bytes(range(32))
for line in sys.stdin:
    if line.startswith("sign "):
        message = base64.b64decode(line[5:])
        field = dkim.sign(message, b"theirs", b"example.com", base64.b64encode(SEED),
            canonicalize=(b"simple", b"simple"), signature_algorithm=b"ed25519-sha256")
        public = nacl.signing.SigningKey(SEED).verify_key.encode()
        print(base64.b64encode(field).decode(), base64.b64encode(public).decode(), flush=True)
        continue
    message, *records = [base64.b64decode(word) for word in line.split(" ")]
    zone = {name.rstrip(b"."): text for name, text in zip(records[::2], records[1::2])}
    def answer(name, timeout=5):
        name = name if isinstance(name, bytes) else name.encode()
        return zone.get(name.rstrip(b"."))
    verdicts = []
    try:
        names = [name.lower() for name, _ in dkim.rfc822_parse(message)[0]]
        for index in range(names.count(b"dkim-signature")):
            good = dkim.DKIM(message).verify(idx=index, dnsfunc=answer)
            verdicts.append("good" if good else "the signature does not verify")
    except Exception as error:
        verdicts.append(f"{type(error).__name__}: {error}".replace("\t", " ").replace("\n", " "))
    print("\t".join(verdicts) or "there is no signature", flush=True)
"#;

/// A running verifier.
pub struct Dkimpy {
    python: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Dkimpy {
    /// Starts it. The first time on a machine this installs it.
    pub fn start() -> Self {
        let mut python = Command::new(interpreter("dkimpy", VERSION, &PACKAGES))
            .args(["-c", PROGRAM])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python can be started");
        let questions = python.stdin.take();
        let answers = BufReader::new(python.stdout.take().expect("the output is piped"));
        Self { python, questions, answers }
    }

    /// The message with a signature of `example.com` in front of it, and the record (name, content) that it
    /// verifies by.
    pub fn sign(&mut self, message: &[u8]) -> (Vec<u8>, (String, String)) {
        let answer = self.ask(&format!("sign {}\n", BASE64_STANDARD.encode(message)));
        let (field, public) = answer.split_once(' ').expect("a signature and a key");
        let field = BASE64_STANDARD.decode(field).expect("base64");
        let record = ("theirs._domainkey.example.com".to_owned(), format!("v=DKIM1; k=ed25519; p={public}"));
        ([&field, message].concat(), record)
    }

    fn ask(&mut self, line: &str) -> String {
        let questions = self.questions.as_mut().expect("it is open until this value goes");
        questions
            .write_all(line.as_bytes())
            .and_then(|()| questions.flush())
            .expect("python takes a message");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("python answers");
        answer.trim_end_matches('\n').to_owned()
    }

    /// Verifies every signature of the message, given what DNS holds (name, content). The error says what is
    /// wrong with the first invalid signature, or that the message has none.
    pub fn verify(&mut self, message: &[u8], records: &[(&str, &str)]) -> Result<(), String> {
        let mut line = BASE64_STANDARD.encode(message);
        for text in records.iter().flat_map(|(name, content)| [name, content]) {
            line.push(' ');
            line.push_str(&BASE64_STANDARD.encode(text));
        }
        line.push('\n');
        let verdicts = self.ask(&line);
        match verdicts.split('\t').find(|verdict| *verdict != "good") {
            Some(wrong) => Err(wrong.to_owned()),
            None => Ok(()),
        }
    }
}

impl Drop for Dkimpy {
    fn drop(&mut self) {
        // Its loop ends with its input.
        drop(self.questions.take());
        // Nothing can be done about a process that cannot be waited for.
        let _ = self.python.wait();
    }
}
