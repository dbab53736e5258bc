//! The notes of a watched disk, and what would be on it had the power failed.
//!
//! A byte is safe once its file was synced after it was written, a name once its folder was synced after it
//! was given. What is not safe may be lost, and the rest of it torn at the size of a sector. A rename happens
//! wholly or not at all, as on every file system with a journal.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs, io,
    ops::Range,
    path::{Path, PathBuf},
};

/// A note's head: kind, id, number, and the lengths of what follows.
const HEAD_BYTES: usize = 32;
/// A disk writes these whole.
const SECTOR_BYTES: usize = 512;

/// What becomes of what was not synced.
#[derive(Clone, Copy, Debug)]
pub enum Unsynced {
    /// All of it is lost.
    Lost,
    /// Some of it is there, out of order and torn; the number says which.
    Torn(u64),
}

/// The notes of a run.
pub struct DiskLog {
    root: PathBuf,
    bytes: Vec<u8>,
    notes: Vec<Note>,
}

struct Note {
    /// Where it ends in the log.
    end: u64,
    kind: u8,
    id: u64,
    number: u64,
    first: Range<usize>,
    second: Range<usize>,
}

/// A change of a file's bytes.
enum FileChange {
    Write { offset: usize, bytes: Range<usize> },
    Truncate(usize),
}

/// A file as far as it is safe, and what was done to it since.
#[derive(Default)]
struct FileState {
    safe: Vec<u8>,
    pending: Vec<(u64, FileChange)>,
}

/// What has a name: a folder, or the file of that id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DiskEntry {
    Folder,
    File(u64),
}

/// A change of names.
#[derive(Clone, Debug)]
enum NameChange {
    Add(PathBuf, DiskEntry),
    Remove(PathBuf),
    Move(PathBuf, PathBuf, DiskEntry),
}

impl NameChange {
    fn is_in(&self, folder: &Path) -> bool {
        match self {
            Self::Add(path, _) | Self::Remove(path) => path.parent() == Some(folder),
            Self::Move(from, to, _) => from.parent() == Some(folder) || to.parent() == Some(folder),
        }
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, DiskEntry>) {
        match self {
            Self::Add(path, named) => drop(names.insert(path.clone(), *named)),
            Self::Remove(path) => drop(names.remove(path)),
            // What it was called before may never have been safe: the new name is all the same.
            Self::Move(from, to, named) => {
                names.remove(from);
                names.insert(to.clone(), *named);
            }
        }
    }
}

/// The disk at one moment of the run.
#[derive(Default)]
struct DiskState {
    files: HashMap<u64, FileState>,
    /// A later process knows a file by another id.
    aliases: HashMap<u64, u64>,
    /// As the program sees them.
    names: BTreeMap<PathBuf, DiskEntry>,
    safe_names: BTreeMap<PathBuf, DiskEntry>,
    pending_names: Vec<(u64, NameChange)>,
}

impl DiskLog {
    pub(super) fn new(root: PathBuf, bytes: Vec<u8>) -> io::Result<Self> {
        let mut notes = Vec::new();
        let mut at = 0;
        // The last note may be cut off where its writer was killed.
        while let Some(head) = bytes.get(at..at + HEAD_BYTES) {
            let word = |range: Range<usize>| {
                let mut word = [0; 8];
                word[..range.len()].copy_from_slice(&head[range]);
                u64::from_ne_bytes(word)
            };
            let length = |range| usize::try_from(word(range)).map_err(io::Error::other);
            let first = at + HEAD_BYTES..at + HEAD_BYTES + length(24..28)?;
            let second = first.end..first.end + length(28..32)?;
            if second.end > bytes.len() {
                break;
            }
            at = second.end;
            let (kind, id, number) = (head[0], word(8..16), word(16..24));
            notes.push(Note { end: at as u64, kind, id, number, first, second });
        }
        Ok(Self { root, bytes, notes })
    }

    /// Where each note ends: the moments at which the power may fail.
    pub fn moments(&self) -> Vec<u64> {
        self.notes.iter().map(|note| note.end).collect()
    }

    /// The paths that the program had touched by this moment.
    pub fn touched(&self, at: u64) -> BTreeSet<PathBuf> {
        let notes = self.notes.iter().take_while(|note| note.end <= at);
        let named = notes.filter(|note| matches!(note.kind, b'A' | b'C' | b'R' | b'U' | b'M'));
        named.map(|note| self.path(&note.first)).collect()
    }

    /// Makes `target` what the watched folder would be had the power failed at this moment.
    pub fn restore(&self, at: u64, unsynced: Unsynced, target: &Path) -> io::Result<()> {
        let mut disk = DiskState::default();
        for note in self.notes.iter().take_while(|note| note.end <= at) {
            disk.follow(self, note);
        }
        let mut chance = match unsynced {
            Unsynced::Lost => None,
            Unsynced::Torn(seed) => Some(Chance(seed)),
        };
        let mut names = disk.safe_names;
        if let Some(chance) = &mut chance {
            let kept = chance.below(disk.pending_names.len() + 1);
            disk.pending_names.iter().take(kept).for_each(|(_, change)| change.apply(&mut names));
        }
        fs::create_dir_all(target)?;
        // Folders come before what is in them: the map is in order.
        for (path, named) in &names {
            let place = target.join(path.strip_prefix(&self.root).map_err(io::Error::other)?);
            if !place.parent().is_some_and(Path::is_dir) {
                continue;
            }
            match named {
                DiskEntry::Folder => fs::create_dir_all(&place)?,
                DiskEntry::File(id) => {
                    let empty = FileState::default();
                    let file = disk.files.get(id).unwrap_or(&empty);
                    fs::write(&place, file.after_the_cut(&self.bytes, chance.as_mut()))?;
                }
            }
        }
        Ok(())
    }

    fn path(&self, range: &Range<usize>) -> PathBuf {
        PathBuf::from(String::from_utf8_lossy(&self.bytes[range.clone()]).into_owned())
    }
}

impl DiskState {
    fn follow(&mut self, log: &DiskLog, note: &Note) {
        let id = self.aliases.get(&note.id).copied().unwrap_or(note.id);
        let path = || log.path(&note.first);
        match note.kind {
            // It was there when its program first looked: either a stranger made it, and it is whole, or an
            // earlier life of the program did.
            b'A' => match self.names.get(&path()) {
                Some(DiskEntry::File(known)) => drop(self.aliases.insert(note.id, *known)),
                Some(DiskEntry::Folder) | None => {
                    let safe = log.bytes[note.second.clone()].to_vec();
                    self.files.insert(id, FileState { safe, pending: Vec::new() });
                    self.names.insert(path(), DiskEntry::File(id));
                    self.safe_names.insert(path(), DiskEntry::File(id));
                }
            },
            b'C' => {
                self.files.insert(id, FileState::default());
                self.rename(note, NameChange::Add(path(), DiskEntry::File(id)));
            }
            b'M' => self.rename(note, NameChange::Add(path(), DiskEntry::Folder)),
            b'U' => self.rename(note, NameChange::Remove(path())),
            b'R' => {
                if let Some(named) = self.names.get(&path()).copied() {
                    self.rename(note, NameChange::Move(path(), log.path(&note.second), named));
                }
            }
            b'W' => {
                let change = FileChange::Write { offset: note.number as usize, bytes: note.second.clone() };
                self.files.entry(id).or_default().pending.push((note.end, change));
            }
            b'T' => {
                let change = FileChange::Truncate(note.number as usize);
                self.files.entry(id).or_default().pending.push((note.end, change));
            }
            b'S' => self.files.entry(id).or_default().sync(note.number, &log.bytes),
            b'D' => {
                let folder = path();
                let (synced, pending): (Vec<_>, Vec<_>) = std::mem::take(&mut self.pending_names)
                    .into_iter()
                    .partition(|(end, change)| *end <= note.number && change.is_in(&folder));
                self.pending_names = pending;
                for (_, change) in synced {
                    change.apply(&mut self.safe_names);
                    // A name that was given up cannot come back after it.
                    if let NameChange::Move(from, ..) = &change {
                        self.pending_names
                            .retain(|(_, other)| !matches!(other, NameChange::Add(path, _) if path == from));
                    }
                }
            }
            kind => panic!("a note of the unknown kind {kind}"),
        }
    }

    fn rename(&mut self, note: &Note, change: NameChange) {
        change.apply(&mut self.names);
        self.pending_names.push((note.end, change));
    }
}

impl FileState {
    fn sync(&mut self, begun_at: u64, log: &[u8]) {
        for (end, change) in std::mem::take(&mut self.pending) {
            match end <= begun_at {
                true => change.apply(&mut self.safe, log, usize::MAX),
                false => self.pending.push((end, change)),
            }
        }
    }

    fn after_the_cut(&self, log: &[u8], chance: Option<&mut Chance>) -> Vec<u8> {
        let mut bytes = self.safe.clone();
        let Some(chance) = chance else { return bytes };
        for (_, change) in &self.pending {
            match chance.below(4) {
                0 | 1 => {}
                2 => change.apply(&mut bytes, log, SECTOR_BYTES * chance.below(16)),
                _ => change.apply(&mut bytes, log, usize::MAX),
            }
        }
        bytes
    }
}

impl FileChange {
    /// Applies it, or as many of its bytes.
    fn apply(&self, file: &mut Vec<u8>, log: &[u8], bytes_max: usize) {
        match self {
            Self::Write { offset, bytes } => {
                let written = &log[bytes.clone()];
                let written = &written[..written.len().min(bytes_max)];
                let end = offset + written.len();
                if file.len() < end {
                    file.resize(end, 0);
                }
                file[*offset..end].copy_from_slice(written);
            }
            Self::Truncate(length) => file.resize(*length, 0),
        }
    }
}

/// Chance that can be repeated (splitmix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound.max(1) as u64) as usize
    }
}
