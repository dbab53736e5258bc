#!/usr/bin/env python3
"""Which pages a load wrote to SQLite's log, and how often, by table and index.

    benches/wal_pages.py BINARY [MESSAGES [CONNECTIONS]]

Starts a server of BINARY on a fresh file, sends it the load of `postway bench`, and reads the log before it is
folded back for the first time, so MESSAGES is bounded by its 64 MiB. A frame of the log is a page that one
transaction changed. Prints, for each table and index, the frames a mail, the pages that the file has of it in the
end, and how often each of these was written.
"""
import collections, json, os, pathlib, secrets, shutil, signal, socket, sqlite3, struct, subprocess, sys, tempfile
import base64, time, urllib.request

FRAME_HEAD, LOG_HEAD = 24, 32


def main():
    binary = os.path.abspath(sys.argv[1])
    messages = int(sys.argv[2]) if len(sys.argv) > 2 else 3000
    connections = sys.argv[3] if len(sys.argv) > 3 else "128"
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        copy = pathlib.Path(folder, "copy")
        copy.mkdir()
        report = run(binary, pathlib.Path(folder), copy, messages, connections)
        show(copy / "postway.db", messages, report)


def run(binary, folder, copy, messages, connections):
    """Sends the load, and copies the file and its log while the server still has them open."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % free.getsockname()[1]
    data = folder / "data"
    key = secrets.token_hex(32)
    env = {name: value for name, value in os.environ.items() if not name.startswith("POSTWAY_")}
    env |= {
        "POSTWAY_DATA_DIR": str(data), "POSTWAY_HTTP_LISTEN": address, "POSTWAY_ADMIN_KEY": key,
        "POSTWAY_SECRET_KEY": base64.b64encode(secrets.token_bytes(32)).decode(),
        "POSTWAY_ALLOW_PRIVATE_TARGETS": "127.0.0.0/8",
    }
    log = open(folder / "server.log", "w")
    server = subprocess.Popen([binary, "serve"], env=env, cwd=folder, stdout=log, stderr=log)
    try:
        wait_until_ready(address)
        # What the start wrote is not the load's.
        before = frames(data / "postway.db-wal")
        client = env | {"POSTWAY_URL": "http://" + address, "POSTWAY_API_KEY": key}
        command = [binary, "--json", "bench", "--messages", str(messages), "--idle-latency", "0", "--connections",
                   connections, "--concurrency", connections, "--pid", str(server.pid)]
        done = subprocess.run(command, env=client, cwd=folder, check=True, capture_output=True, text=True)
        time.sleep(1)
        for name in os.listdir(data):
            if name.startswith("postway.db") and not name.endswith((".lock", "-shm")):
                shutil.copy(data / name, copy / name)
        return {"before": len(before), "bench": json.loads(done.stdout)}
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)


def wait_until_ready(address):
    for _ in range(500):
        try:
            urllib.request.urlopen(f"http://{address}/health/ready", timeout=1).read()
            return
        except OSError:
            time.sleep(0.02)
    sys.exit("the server is not ready")


def frames(path):
    """The page numbers of the log's frames, and whether each ended a transaction."""
    log = path.read_bytes()
    page_bytes, salt = struct.unpack(">8xI4x8s", log[:LOG_HEAD][:24])
    found, at = [], LOG_HEAD
    while at + FRAME_HEAD + page_bytes <= len(log):
        page, size, of_frame = struct.unpack(">II8s", log[at:at + 16])
        if of_frame != salt:
            break
        found.append((page, size > 0))
        at += FRAME_HEAD + page_bytes
    return found


def show(database, messages, report):
    written = frames(pathlib.Path(f"{database}-wal"))[report["before"]:]
    connection = sqlite3.connect(database)
    owner = dict(connection.execute("SELECT pageno, name || CASE pagetype WHEN 'overflow' THEN ' (overflow)' \
        WHEN 'internal' THEN ' (inner)' ELSE '' END FROM dbstat"))
    commits = sum(ends for _, ends in written)
    filled = dict(connection.execute("SELECT pageno, payload FROM dbstat"))
    by_owner, pages = collections.Counter(), collections.defaultdict(set)
    for page, _ in written:
        name = owner.get(page, "free, pointer map")
        by_owner[name] += 1
        pages[name].add(page)
    print(f"{messages} mails, {commits} transactions ({commits / messages:.3f} a mail), {len(written)} frames")
    print(f"{'':34}{'frames a mail':>14}{'a transaction':>15}{'pages a mail':>14}{'times each':>12}{'bytes a mail':>14}")
    for name, count in by_owner.most_common():
        own = len(pages[name])
        print(f"{name:34}{count / messages:14.3f}{count / commits:15.2f}{own / messages:14.3f}{count / own:12.1f}"
              f"{sum(filled.get(page, 0) for page in pages[name]) / messages:14.0f}")
    all_pages = sum(len(own) for own in pages.values())
    print(f"{'all':34}{len(written) / messages:14.3f}{len(written) / commits:15.2f}{all_pages / messages:14.3f}")
    print(json.dumps(report["bench"]))


main()
