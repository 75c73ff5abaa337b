"""filesystem.Filesystem and /files of src/envd, over HTTP, with a real agent."""
import gzip
import io
import os
import time
import urllib.parse
import uuid

import pytest
from envd import ID, RpcError, basic, signature, wait_for
from envd_fixtures import code_of, envd, server  # noqa: F401

OCTETS = {"Content-Type": "application/octet-stream"}


@pytest.fixture
def home(server):
    return server.home


def put(envd, path, data=b"", headers=None, **query):
    q = urllib.parse.urlencode({"path": path, **query})
    return envd.http("POST", f"/files?{q}", data, headers={**OCTETS, **(headers or {})})


def get(envd, path, headers=None, **query):
    return envd.http("GET", "/files?" + urllib.parse.urlencode({"path": path, **query}), headers=headers)


def multipart(*parts, boundary="b0undary"):
    """(name, filename or None, bytes) each."""
    out = b""
    for name, filename, data in parts:
        out += f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"'.encode()
        if filename is not None:
            out += f'; filename="{filename}"\r\nContent-Type: application/octet-stream'.encode()
        out += b"\r\n\r\n" + data + b"\r\n"
    return out + f"--{boundary}--\r\n".encode(), {"Content-Type": f"multipart/form-data; boundary={boundary}"}


# --- calls ---

def test_an_entry_says_everything(envd, home):
    f = home / "file.txt"
    f.write_bytes(b"four")
    f.chmod(0o640)
    os.utime(f, ns=(0, 1700000000123456789))
    os.setxattr(f, "user.e2b.colour", b"red")
    os.setxattr(f, "user.other", b"no")
    assert envd.fs("Stat", path="file.txt")["entry"] == {
        "name": "file.txt", "type": "FILE_TYPE_FILE", "path": str(f), "size": "4", "mode": 0o640, "permissions": "-rw-r-----",
        "owner": "user", "group": "user", "modifiedTime": "2023-11-14T22:13:20.123456789Z", "metadata": {"colour": "red"}}


def test_owners_without_a_name_are_numbers(envd, home):
    (home / "f").write_text("")
    os.chown(home / "f", 54321, 777)
    e = envd.fs("Stat", path="f")["entry"]
    assert (e["owner"], e["group"]) == ("ghost", "777")


def test_links(envd, home):
    (home / "dir").mkdir()
    (home / "dir/file").write_text("12345")
    (home / "to-file").symlink_to("dir/file")
    (home / "to-dir").symlink_to(home / "dir")
    (home / "nowhere").symlink_to("gone")
    e = envd.fs("Stat", path="to-file")["entry"]
    assert e["type"] == "FILE_TYPE_FILE" and e["symlinkTarget"] == str(home / "dir/file") and e["permissions"][0] == "L"
    assert e["mode"] == 0o644 and e["name"] == "to-file"
    assert envd.fs("Stat", path="to-dir")["entry"]["type"] == "FILE_TYPE_DIRECTORY"
    e = envd.fs("Stat", path="nowhere")["entry"]
    assert e["type"] == "FILE_TYPE_SYMLINK" and "symlinkTarget" not in e
    listed = envd.fs("ListDir", path=str(home / "to-dir"))["entries"]
    assert [x["path"] for x in listed] == [str(home / "to-dir/file")]
    assert get(envd, "to-file").body == b"12345"
    assert get(envd, "to-file", headers={"Range": "bytes=1-2"}).body == b"23"


def test_listing_by_depth(envd, home):
    (home / "a/b/c").mkdir(parents=True)
    (home / "a/f").write_text("")
    names = lambda **kw: sorted(os.path.relpath(e["path"], home) for e in envd.fs("ListDir", path="", **kw)["entries"])
    assert names() == names(depth=1) == names(depth=0) == ["a"]
    assert names(depth=2) == ["a", "a/b", "a/f"]
    assert names(depth=9) == ["a", "a/b", "a/b/c", "a/f"]
    assert envd.fs("ListDir", path="a/b/c")["entries"] == []
    assert code_of(lambda: envd.fs("ListDir", path="a/f")) == "invalid_argument"
    assert code_of(lambda: envd.fs("ListDir", path="nothing")) == "not_found"


def test_a_large_directory(envd, home):
    for i in range(3000):
        (home / f"{i:05d}-{'x' * 60}").write_text("")
    entries = envd.fs("ListDir", path="")["entries"]
    assert len({e["name"] for e in entries}) == 3000


def test_making_moving_and_removing(envd, home):
    assert envd.fs("MakeDir", path="x/y/z")["entry"]["path"] == str(home / "x/y/z")
    with pytest.raises(RpcError) as e:
        envd.fs("MakeDir", path="x/y/z")
    assert e.value.code == "already_exists" and e.value.status == 409
    (home / "f").write_text("f")
    assert code_of(lambda: envd.fs("MakeDir", path="f")) == "invalid_argument"
    assert envd.fs("Move", source="f", destination="new/dir/g")["entry"]["path"] == str(home / "new/dir/g")
    assert (home / "new/dir/g").read_text() == "f" and not (home / "f").exists()
    assert code_of(lambda: envd.fs("Move", source="f", destination="h")) == "not_found"
    assert envd.fs("Remove", path="new") == {} and not (home / "new").exists()
    assert envd.fs("Remove", path="new") == {}
    with pytest.raises(RpcError) as e:
        envd.fs("Stat", path="new")
    assert e.value.code == "not_found" and e.value.status == 404


def test_bad_calls(envd):
    for call in (lambda: envd.fs("Stat", path=1), lambda: envd.fs("Stat", depth=1), lambda: envd.fs("Move", source="a"),
                 lambda: envd.fs("ListDir", path="", depth=-1), lambda: envd.fs("Stat", path="~root/x"), lambda: envd.fs("Stat", path="/" + "x" * 5000)):
        assert code_of(call) == "invalid_argument"
    assert code_of(lambda: envd.fs("Stat", path="/", headers=basic("nobody-here"))) == "unauthenticated"
    assert code_of(lambda: envd.fs("Stat", path="/", headers=basic("ghost"))) == "unavailable"


def test_more_requests_at_once_than_workers(envd, home):
    import threading
    (home / "f").write_text("x" * 100)
    done = []
    threads = [threading.Thread(target=lambda: done.append(envd.fs("Stat", path="f")["entry"]["size"])) for _ in range(60)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert done == ["100"] * 60


# --- contents ---

def test_upload_and_download(envd, home):
    data = os.urandom(3 << 20)
    r = put(envd, "deep/er/file.bin", data)
    assert r.status == 200 and r.json == [{"name": "file.bin", "path": str(home / "deep/er/file.bin"), "type": "file"}]
    assert (home / "deep/er/file.bin").read_bytes() == data and (home / "deep/er/file.bin").stat().st_mode & 0o777 == 0o644
    r = get(envd, "deep/er/file.bin")
    assert r.status == 200 and r.body == data and r.headers["Content-Length"] == str(len(data))
    assert put(envd, "deep/er/file.bin", b"").status == 200  # shorter than before
    r = get(envd, "deep/er/file.bin")
    assert r.status == 200 and r.body == b""


def test_chunked_upload(envd, home):
    c = envd.connect()
    c.request("POST", "/files?path=c", body=(b"x" * 70000 for _ in range(10)), headers=envd.headers(more=OCTETS), encode_chunked=True)
    assert c.getresponse().status == 200
    assert (home / "c").stat().st_size == 700000


def test_files_that_say_they_are_empty(envd):
    assert b"Linux version" in get(envd, "/proc/version").body


def test_ranges(envd, home):
    (home / "f").write_bytes(b"0123456789")
    for value, status, body in (("bytes=0-0", 206, b"0"), ("bytes=5-", 206, b"56789"), ("bytes=-3", 206, b"789"), ("bytes=8-100", 206, b"89"),
                                ("bytes=10-", 416, b""), ("bytes=-0", 416, b""), ("bytes=3-1", 200, b"0123456789"), ("lines=1-2", 200, b"0123456789"),
                                ("bytes=0-1,3-4", 200, b"0123456789"), ("bytes=-99", 206, b"0123456789")):
        r = get(envd, "f", headers={"Range": value})
        assert (r.status, r.body) == (status, body), value
    assert get(envd, "f", headers={"Range": "bytes=2-4"}).headers["Content-Range"] == "bytes 2-4/10"
    assert get(envd, "f", headers={"Range": "bytes=99-"}).headers["Content-Range"] == "bytes */10"
    assert get(envd, "f", headers={"Range": "bytes=2-4", "If-Range": '"x"'}).status == 200


def test_failures_of_contents(envd, home):
    (home / "dir").mkdir()
    (home / "file").write_text("")
    for r, status in ((get(envd, "nothing"), 404), (get(envd, "dir"), 400), (get(envd, ""), 400), (put(envd, "dir", b"x"), 400),
                      (put(envd, "file/below", b"x"), 400), (put(envd, "", b"x"), 400), (get(envd, "f", username="nobody"), 401),
                      (get(envd, "/x" * 3000), 400), (put(envd, "big", b"x" * (5 << 20)), 507), (get(envd, "/dev/zero"), 400)):
        assert r.status == status and r.json["code"] == status and r.json["message"], r
    assert envd.http("PUT", "/files?path=x", b"").status == 405
    assert envd.http("POST", "/files?path=x", b"", headers={"Content-Type": "text/plain"}).status == 400
    assert envd.http("POST", "/files?path=x", b"", headers={**OCTETS, "Content-Encoding": "br"}).status == 415
    assert envd.http("GET", "/files?path=%zz").status == 400
    assert envd.http("GET", "/files?path=a&path=b").status == 400


def test_multipart(envd, home):
    body, headers = multipart(("file", "one.txt", b"1"), ("ignored", "two.txt", b"2"), ("file", "/".join([str(home), "a", "b.txt"]), b"\r\n--b0undar\r\n"))
    r = envd.http("POST", "/files", body, headers=headers)
    assert r.status == 200 and [f["path"] for f in r.json] == [str(home / "one.txt"), str(home / "a/b.txt")]
    assert (home / "one.txt").read_bytes() == b"1" and (home / "a/b.txt").read_bytes() == b"\r\n--b0undar\r\n" and not (home / "two.txt").exists()


def test_multipart_with_a_path(envd, home):
    body, headers = multipart(("file", None, b"field"))
    r = envd.http("POST", "/files?path=given", body, headers=headers)
    assert r.status == 200 and (home / "given").read_bytes() == b"field"
    assert envd.http("POST", "/files", body, headers=headers).status == 400
    body, headers = multipart(("file", "a", b"1"), ("file", "b", b"2"))
    r = envd.http("POST", "/files?path=given", body, headers=headers)
    assert r.status == 400 and "same path" in r.json["message"]


def test_large_multipart_in_odd_pieces(envd, home):
    data = os.urandom(2 << 20)
    body, headers = multipart(("file", "big", data), ("file", "small", b"s"))
    c = envd.connect()
    c.request("POST", "/files", body=iter([body[i:i + 9973] for i in range(0, len(body), 9973)]), headers=envd.headers(more=headers), encode_chunked=True)
    assert c.getresponse().status == 200
    assert (home / "big").read_bytes() == data and (home / "small").read_bytes() == b"s"


@pytest.mark.parametrize("body", [
    b"", b"--b\r\n", b"preamble\r\n--b\r\n", b"--b--", b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\ncut",
    b"--b\r\n\r\nno head\r\n--b--", b"--b\r\nContent-Disposition: attachment; name=\"file\"\r\n\r\nx\r\n--b--",
    b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\nx\r\n--b--trailing",
    b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"; filename=\"y\"\r\n\r\nx\r\n--b--",
    b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename*=utf-8''x\r\n\r\nx\r\n--b--",
    b"--b\r\nX: " + b"y" * 9000 + b"\r\n\r\nx\r\n--b--",
])
def test_bad_multipart(envd, body):
    r = envd.http("POST", "/files", body, headers={"Content-Type": "multipart/form-data; boundary=b"})
    assert (r.status == 400 and r.json["code"] == 400) or (body == b"--b--" and r.json == [])


def test_compressed_upload(envd, home):
    data = b"squeeze me " * 100000
    assert put(envd, "z", gzip.compress(data), headers={"Content-Encoding": "gzip"}).status == 200
    assert (home / "z").read_bytes() == data
    two = gzip.compress(b"a" * 1000) + gzip.compress(b"b" * 1000)
    assert put(envd, "two", two, headers={"Content-Encoding": "gzip"}).status == 200
    assert (home / "two").read_bytes() == b"a" * 1000 + b"b" * 1000
    body, headers = multipart(("file", "m", data))
    assert envd.http("POST", "/files", gzip.compress(body), headers={**headers, "Content-Encoding": "gzip"}).status == 200
    assert (home / "m").read_bytes() == data
    for bad in (b"not gzip", gzip.compress(data)[:-5], gzip.compress(data) + b"garbage", b""):
        assert put(envd, "bad", bad, headers={"Content-Encoding": "gzip"}).status == 400


def test_a_bomb_fills_the_files_limit_and_nothing_else(envd, home):
    r = put(envd, "bomb", gzip.compress(bytes(200 << 20)), headers={"Content-Encoding": "gzip"})
    assert r.status == 507  # the test's agent allows files of 4 MiB
    assert (home / "bomb").stat().st_size <= 4 << 20


def test_metadata_replaces_and_clears(envd, home):
    r = put(envd, "f", b"x", headers={"X-Metadata-Author": "me", "x-metadata-TAG": "1"})
    assert r.json[0]["metadata"] == {"author": "me", "tag": "1"}
    assert envd.fs("Stat", path="f")["entry"]["metadata"] == {"author": "me", "tag": "1"}
    assert put(envd, "f", b"x", headers={"X-Metadata-Other": "2"}).status == 200
    assert envd.fs("Stat", path="f")["entry"]["metadata"] == {"other": "2"}
    assert put(envd, "f", b"x").status == 200
    assert "metadata" not in envd.fs("Stat", path="f")["entry"]
    assert put(envd, "f", b"x", headers={f"X-Metadata-{i}": "v" for i in range(40)}).status == 400


def test_signatures(envd, home):
    (home / "f").write_text("secret")
    ask = lambda method="GET", body=None, **q: envd.http(method, "/files?" + urllib.parse.urlencode(q), body, bare=True, headers=OCTETS if body else {})
    bare = {"E2b-Sandbox-Id": ID, "E2b-Sandbox-Port": "49983"}
    assert envd.http("GET", "/files?path=f", bare=True, headers=bare).json["message"] == "missing signature query parameter"
    assert envd.http("GET", "/files?path=f&signature=v1_x", bare=True, headers=bare).json["message"] == "invalid signature"
    assert ask(path="f", signature=signature("f", "read")).body == b"secret"
    assert ask(path="f", username="user", signature=signature("f", "read", "user")).body == b"secret"
    later, sooner = int(time.time()) + 60, int(time.time()) - 60
    assert ask(path="f", signature=signature("f", "read", expiration=later), signature_expiration=later).body == b"secret"
    r = ask(path="f", signature=signature("f", "read", expiration=sooner), signature_expiration=sooner)
    assert r.status == 401 and r.json["message"] == "signature is already expired"
    assert ask(path="f", signature=signature("f", "read", expiration=later)).status == 421  # nobody's
    assert ask("POST", b"new", path="w", signature=signature("w", "read")).status == 421
    assert ask("POST", b"new", path="w", signature=signature("w", "write")).status == 200
    assert (home / "w").read_text() == "new"
    assert signature("hello.txt", "read", "user") == "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E"


# --- changes ---

def watch(envd, path, **kw):
    s = envd.stream("filesystem.Filesystem/WatchDir", {"path": path, **kw})
    assert s.next() == {"start": {}}
    return s


def events_until(s, name):
    """[(type, name)] up to the first with that name."""
    got = []
    while True:
        e = s.next()["filesystem"]
        got.append((e["type"], e["name"]))
        if e["name"] == name:
            return got


def test_watching(envd, home):
    s = watch(envd, "", includeEntry=True)
    (home / "f").write_text("x")
    first = s.next()["filesystem"]
    assert (first["name"], first["type"]) == ("f", "EVENT_TYPE_CREATE") and first["entry"]["path"] == str(home / "f")
    (home / "f").rename(home / "g")
    assert ("EVENT_TYPE_RENAME", "f") in events_until(s, "g")
    (home / "g").chmod(0o600)
    (home / "g").unlink()
    (home / "last").write_text("")
    got = events_until(s, "last")
    assert ("EVENT_TYPE_CHMOD", "g") in got and ("EVENT_TYPE_REMOVE", "g") in got
    s.close()


def test_watching_below(envd, home):
    s = watch(envd, "", recursive=True)
    (home / "new").mkdir()
    wait_for(lambda: s.next()["filesystem"]["name"] == "new")
    (home / "new/f").write_text("x")
    assert ("EVENT_TYPE_CREATE", "new/f") in events_until(s, "new/f")
    s.close()


def test_watches_that_cannot_be(envd, home):
    (home / "f").write_text("")
    assert code_of(envd.stream("filesystem.Filesystem/WatchDir", {"path": "nothing"}).next) == "not_found"
    assert code_of(envd.stream("filesystem.Filesystem/WatchDir", {"path": "f"}).next) == "invalid_argument"
    assert code_of(lambda: envd.fs("CreateWatcher", path="nothing")) == "not_found"
    assert code_of(lambda: envd.fs("GetWatcherEvents", watcherId="x")) == "not_found"
    streams = [watch(envd, "") for _ in range(14)]
    assert code_of(envd.stream("filesystem.Filesystem/WatchDir", {"path": ""}).next) == "resource_exhausted"
    for s in streams:
        s.close()
    wait_for(lambda: watch_or_none(envd))


def watch_or_none(envd):
    try:
        watch(envd, "").close()
        return True
    except RpcError:
        return False


def test_watchers_that_are_polled(envd, home):
    w = envd.fs("CreateWatcher", path="", recursive=False)["watcherId"]
    (home / "a").write_text("1")
    (home / "b").mkdir()
    events = []

    def has_all():
        events.extend(envd.fs("GetWatcherEvents", watcherId=w)["events"])
        return {("EVENT_TYPE_CREATE", "a"), ("EVENT_TYPE_WRITE", "a"), ("EVENT_TYPE_CREATE", "b")} <= {(e["type"], e["name"]) for e in events}

    wait_for(has_all)
    assert envd.fs("GetWatcherEvents", watcherId=w) == {"events": []}
    assert envd.fs("RemoveWatcher", watcherId=w) == {}
    assert code_of(lambda: envd.fs("GetWatcherEvents", watcherId=w)) == "not_found"


def test_lost_events_are_told(envd, home):
    w = envd.fs("CreateWatcher", path="")["watcherId"]
    for i in range(5000):
        (home / f"{i}").write_text("")
    time.sleep(0.5)
    assert len(envd.fs("GetWatcherEvents", watcherId=w)["events"]) == 4096
    assert code_of(lambda: envd.fs("GetWatcherEvents", watcherId=w)) == "resource_exhausted"


# --- the rest ---

def test_plain_paths(envd):
    assert envd.http("GET", "/health", token="").status == 204
    assert envd.http("GET", "/envs").json == {"FROM_SANDBOX": "yes", "LOGNAME": "sandbox"}
    m = envd.http("GET", "/metrics").json
    assert m["mem_total_mib"] == 512 and m["disk_total"] > 0 and abs(m["ts"] - time.time()) < 5
    assert set(m) == {"ts", "cpu_count", "cpu_used_pct", "mem_total", "mem_used", "mem_cache", "mem_total_mib", "mem_used_mib", "disk_used", "disk_total"}
    for path in ("/init", "/filesystem", "/files/x", "/"):
        assert envd.http("POST", path, b"").status == 404
    for path in ("/envs", "/metrics", "/init"):
        assert envd.http("GET", path, token="").status == 401


def test_browsers_may_ask(envd):
    r = envd.http("OPTIONS", "/files", token="", headers={"Origin": "https://x.example", "Access-Control-Request-Method": "POST",
                                                             "Access-Control-Request-Headers": "content-type,x-access-token"})
    assert r.status == 204 and r.headers["Access-Control-Allow-Origin"] == "*"
    assert r.headers["Access-Control-Allow-Headers"] == "content-type,x-access-token" and "POST" in r.headers["Access-Control-Allow-Methods"]
    assert envd.http("GET", "/health").headers["Access-Control-Allow-Origin"] == "*"
