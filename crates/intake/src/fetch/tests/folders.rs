//! Files of the folders that an operator has opened: those, and nothing beside them.

use std::os::unix::fs::symlink;

use super::*;

/// A folder to read from, a secret beside it, and every way to get there.
fn traps() -> (tempfile::TempDir, PathBuf) {
    let around = tempfile::tempdir().unwrap();
    let root = around.path().canonicalize().unwrap();
    let open = root.join("open");
    fs::create_dir_all(open.join("sub")).unwrap();
    fs::create_dir(root.join("open-not")).unwrap();
    for file in ["secret", "open-not/secret", "open/a.txt", "open/sub/b.txt"] {
        fs::write(root.join(file), file).unwrap();
    }
    symlink(root.join("secret"), open.join("out")).unwrap();
    symlink(root.join("nothing"), open.join("out-to-nothing")).unwrap();
    symlink(&root, open.join("up")).unwrap();
    symlink("sub/b.txt", open.join("in")).unwrap();
    symlink("loop", open.join("loop")).unwrap();
    symlink("/dev/zero", open.join("device")).unwrap();
    (around, open)
}

#[tokio::test]
async fn no_path_leads_out_of_the_open_folders_or_tells_what_is_there() {
    let (_around, open) = traps();
    let fetcher = fetcher(FetchConfig { folders: opened(&[&open]), ..config() });
    let mut messages = Vec::new();
    for path in [
        open.join("../secret"),
        open.join("../nothing"),
        open.join("sub/../../secret"),
        open.join("out"),
        open.join("out-to-nothing"),
        open.join("up/secret"),
        open.join("up/open/a.txt/x"),
        open.join("device"),
        open.join("loop"),
        open.join("nothing"),
        open.join("a.txt\0b"),
        open.with_file_name("secret"),
        open.with_file_name("open-not").join("secret"),
        PathBuf::from("/etc/passwd"),
        PathBuf::from("/proc/self/environ"),
        PathBuf::from("open/a.txt"),
        PathBuf::from("../../x"),
        PathBuf::from("../secret"),
        PathBuf::from("sub/../../secret"),
        PathBuf::from("out"),
        PathBuf::from("up/secret"),
        PathBuf::from("nothing"),
        Path::new("/").join("x".repeat(5_000)),
    ] {
        let error = one(&fetcher, by_path(&path)).await.unwrap_err();
        assert!(!error.transient && error.field == "attachments[1].path", "{}: {error}", path.display());
        messages.push(error.message);
    }
    messages.dedup();
    assert_eq!(messages.len(), 1, "{messages:?}");
}

#[tokio::test]
async fn regular_files_in_the_open_folders_are_read_and_nothing_else() {
    let (_around, open) = traps();
    let by_link = open.with_file_name("link");
    symlink(&open, &by_link).unwrap();
    let folders = opened(&[&open.with_file_name("not-yet"), &open, &by_link]);
    let fetcher = fetcher(FetchConfig { folders, ..config() });
    let read = async |path: PathBuf| one(&fetcher, by_path(path)).await;
    assert_eq!(read(open.join("a.txt")).await.unwrap().bytes, "open/a.txt");
    assert_eq!(read(open.join("in")).await.unwrap().bytes, "open/sub/b.txt");
    assert_eq!(read(by_link.join("sub/b.txt")).await.unwrap().bytes, "open/sub/b.txt");
    assert_eq!(read("a.txt".into()).await.unwrap().bytes, "open/a.txt", "below the first that has it");
    assert_eq!(read("./sub/b.txt".into()).await.unwrap().bytes, "open/sub/b.txt");
    assert!(read(open.join("sub")).await.unwrap_err().message.contains("not a regular file"));
    let _socket = std::os::unix::net::UnixListener::bind(open.join("socket")).unwrap();
    assert!(read(open.join("socket")).await.unwrap_err().message.contains("not a regular file"));
    fs::write(open.join("large"), vec![0; 100_001]).unwrap();
    assert!(read(open.join("large")).await.unwrap_err().message.contains("larger than 100000"));
    let error = one(&super::tests::fetcher(config()), by_path(open.join("a.txt"))).await.unwrap_err();
    assert!(!error.transient && error.message.contains("POSTWAY_ATTACHMENTS_FOLDERS"), "{error}");
}

/// Two tenants, a folder each below one folder: `a` has a file that is `b`'s to wish for.
#[tokio::test]
async fn no_tenant_reads_what_is_in_the_folder_of_another() {
    let around = tempfile::tempdir().unwrap();
    let root = around.path().canonicalize().unwrap();
    for tenant in ["a", "b"] {
        fs::create_dir(root.join(tenant)).unwrap();
        fs::write(root.join(tenant).join("invoice.txt"), tenant).unwrap();
    }
    fs::write(root.join("common.txt"), "common").unwrap();
    symlink("../a/invoice.txt", root.join("b/link")).unwrap();
    symlink("../a", root.join("b/folder")).unwrap();
    let each = format!("{}/{{tenant}}", root.display()).parse().unwrap();
    let fetcher = fetcher(FetchConfig { folders: vec![each], ..config() });
    let read = async |tenant: &str, path: PathBuf| {
        let tenant = tenant.parse().unwrap();
        let read = fetcher.fetch_all(&scope(&tenant), &[by_path(path)]).await;
        read.map(|mut files| files.remove(0).bytes)
    };
    for tenant in ["a", "b"] {
        assert_eq!(read(tenant, root.join(tenant).join("invoice.txt")).await.unwrap(), tenant);
    }
    let mut messages = Vec::new();
    for path in [
        "a/invoice.txt",
        "a/nothing.txt",
        "b/../a/invoice.txt",
        "b/link",
        "b/folder/invoice.txt",
        "common.txt",
        "b/../common.txt",
        "{tenant}/invoice.txt",
    ] {
        let error = read("b", root.join(path)).await.unwrap_err();
        assert!(!error.transient, "{path}: {error}");
        messages.push(error.message);
    }
    messages.dedup();
    assert_eq!(messages.len(), 1, "{messages:?}");
    // An id that would be a folder above, were it put into the path.
    for tenant in [".", ".."] {
        let error = read(tenant, root.join("a/invoice.txt")).await.unwrap_err();
        assert!(error.message.contains("attachments.folders"), "{error}");
    }
}

#[tokio::test]
async fn a_folder_that_names_no_tenant_is_for_the_first_one_alone() {
    let (_around, open) = traps();
    let fetcher = fetcher(FetchConfig { folders: vec![open.to_str().unwrap().parse().unwrap()], ..config() });
    let read = async |tenant: &str| {
        let tenant = tenant.parse().unwrap();
        fetcher.fetch_all(&scope(&tenant), &[by_path(open.join("a.txt"))]).await
    };
    assert!(read("default").await.is_ok());
    let error = read("other").await.unwrap_err();
    assert!(!error.transient && error.message.contains("POSTWAY_ATTACHMENTS_FOLDERS"), "{error}");
}

#[tokio::test]
async fn a_pipe_in_an_open_folder_keeps_nobody_waiting() {
    let (_around, open) = traps();
    let pipe = open.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let fetcher = fetcher(FetchConfig { folders: opened(&[&open]), ..config() });
    let error = one(&fetcher, by_path(pipe)).await.unwrap_err();
    assert!(!error.transient && error.message.contains("not a regular file"), "{error}");
}
