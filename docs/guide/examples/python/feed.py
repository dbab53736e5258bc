"""Follows the feed: every event once, in order, also over restarts of this program."""

import os
import pathlib

from postway import call

place = pathlib.Path(os.environ.get("CURSOR_FILE", "cursor.txt"))
cursor = place.read_text() if place.exists() else None
while True:
    after = f"&after={cursor}" if cursor else ""
    page = call("GET", f"/v1/events?limit=100&wait=30{after}")  # without news it answers after 30 s
    for entry in page["data"]:
        about = entry["message"]["id"] if entry["message"] else entry["inbound"]
        print(entry["type"], about, flush=True)  # deal with it, then keep its cursor
        cursor = entry["cursor"]
        place.with_suffix(".new").write_text(cursor)
        place.with_suffix(".new").replace(place)
    cursor = page["next_cursor"]
