//! Free space on the disks that the server writes to, and the kinds of these disks.

use std::fs;
use std::path::{Path, PathBuf};

use indicatif::BinaryBytes;
use rustix::fs::statvfs;

use super::{CheckupFinding, CheckupState};
use crate::config::ServerConfig;

const GIB: u64 = 1 << 30;
/// Less free space than this, in percent or in bytes, is a warning.
const FREE_WARNING: (u64, u64) = (10, 2 * GIB);
/// And this a problem: a full disk takes no mail.
const FREE_PROBLEM: (u64, u64) = (1, GIB / 4);

/// Checks the space for everything that is written.
pub fn check(config: &ServerConfig) -> Vec<CheckupFinding> {
    let mut places = vec![("data folder", config.data_dir.clone())];
    match config.storage.url.expose().split_once("://") {
        Some(("file", folder)) => places.push(("storage", PathBuf::from(folder))),
        Some((scheme, _)) => {
            let mut findings = rooms(&places);
            let found = format!("{scheme}:// has no end that can be seen from here");
            findings.push(CheckupFinding::new("storage", CheckupState::Skipped).found(found));
            return findings;
        }
        None => {}
    }
    places.extend(config.spool.folder.clone().map(|folder| ("spool", folder)));
    rooms(&places)
}

fn rooms(places: &[(&'static str, PathBuf)]) -> Vec<CheckupFinding> {
    places.iter().map(|(name, path)| room(name, path)).collect()
}

fn room(name: &str, path: &Path) -> CheckupFinding {
    // A folder that is still to be made will be on its parent's disk.
    let existing = std::path::absolute(path)
        .ok()
        .and_then(|path| path.ancestors().find(|ancestor| ancestor.exists()).map(Path::to_owned));
    let Some(existing) = existing else {
        return CheckupFinding::new(name, CheckupState::Skipped)
            .found(format!("{} cannot be found", path.display()));
    };
    match statvfs(&existing) {
        Ok(disk) => {
            let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
            let nodes = (disk.f_favail, disk.f_files);
            judge(name, path, (bytes(disk.f_bavail), bytes(disk.f_blocks)), nodes)
        }
        Err(error) => {
            CheckupFinding::new(name, CheckupState::Skipped).found(format!("{}: {error}", path.display()))
        }
    }
}

/// `bytes` and `files`: how many are free, of how many.
fn judge(name: &str, path: &Path, bytes: (u64, u64), files: (u64, u64)) -> CheckupFinding {
    let (free, all) = bytes;
    let percent = |(free, all): (u64, u64)| free.saturating_mul(100).checked_div(all).unwrap_or(100);
    let below = |(share, least): (u64, u64)| percent(bytes) < share || free < least;
    let found = format!("{}, {} of {} free", path.display(), BinaryBytes(free), BinaryBytes(all));
    let advice = "a full disk takes no mail: make room, or shorten what is kept (`postway cleanup`, the tenants' retention)";
    if below(FREE_PROBLEM) || (files.1 > 0 && percent(files) < 1) {
        return CheckupFinding::new(name, CheckupState::Problem).found(found).advice(advice);
    }
    match below(FREE_WARNING) {
        true => CheckupFinding::new(name, CheckupState::Warning).found(found).advice(advice),
        false => CheckupFinding::new(name, CheckupState::Ok).found(found),
    }
}

/// The kind of file system that a path is on, if the system says.
pub fn filesystem(path: &Path) -> Option<String> {
    kind_of(path, &fs::read_to_string("/proc/self/mountinfo").ok()?)
}

/// The kind of the innermost mount that contains the path. Of two mounts at one path the later covers the
/// earlier.
fn kind_of(path: &Path, mounts: &str) -> Option<String> {
    let mount = |line: &str| {
        let (left, right) = line.split_once(" - ")?;
        let point = left.split(' ').nth(4)?.replace("\\040", " ");
        let holds = path.starts_with(&point);
        holds.then(|| {
            (Path::new(&point).components().count(), right.split(' ').next().unwrap_or("").to_owned())
        })
    };
    mounts.lines().filter_map(mount).max_by_key(|(depth, _)| *depth).map(|(_, kind)| kind)
}

/// Whether such a disk is on another machine.
pub fn is_remote(kind: &str) -> bool {
    let remote =
        ["nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "glusterfs", "virtiofs"];
    remote.contains(&kind) || ["fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.rclone"].contains(&kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
        30 22 0:25 / /srv/mail\\040box rw shared:9 - nfs4 host:/x rw\n\
        31 22 0:26 / /tmp rw - ext4 /dev/sdb1 rw\n\
        32 31 0:27 / /tmp rw - tmpfs tmpfs rw\n";

    #[test]
    fn the_innermost_mount_says_what_a_disk_is() {
        let kind = |path: &str| kind_of(Path::new(path), MOUNTS).unwrap();
        assert_eq!(kind("/var/lib/postway"), "ext4");
        assert_eq!(kind("/srv/mail box/data"), "nfs4");
        assert_eq!(kind("/srv/mail"), "ext4");
        assert_eq!(kind("/tmp/x"), "tmpfs");
        assert!(is_remote("nfs4") && !is_remote("tmpfs"));
    }

    #[test]
    fn little_room_is_a_warning_and_none_a_problem() {
        let state = |free, all| judge("x", Path::new("/"), (free, all), (1, 1)).state;
        assert_eq!(state(500 * GIB, 1_000 * GIB), CheckupState::Ok);
        assert_eq!(state(15 * GIB, 1_000 * GIB), CheckupState::Warning);
        assert_eq!(state(9 * GIB, 1_000 * GIB), CheckupState::Problem);
        assert_eq!(state(GIB, 4 * GIB), CheckupState::Warning);
        assert_eq!(state(GIB / 8, 4 * GIB), CheckupState::Problem);
        assert_eq!(
            judge("x", Path::new("/"), (90 * GIB, 100 * GIB), (0, 1_000)).state,
            CheckupState::Problem
        );
    }

    #[test]
    fn room_is_found_also_for_a_folder_that_is_still_to_be_made() {
        let folder = tempfile::tempdir().unwrap();
        let finding = room("x", &folder.path().join("not/made/yet"));
        assert!(finding.found.as_deref().unwrap().contains("free"), "{finding:?}");
    }
}
