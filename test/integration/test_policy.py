"""`gabion policy`: check shows the whole network, explain answers as egress would, diff lists what changed."""
import json

import pytest
from harness import gabion

POLICY = """version: 1
network:
  allow:
    - { host: api.example.com, ports: [443] }
    - { host: "*.files.example", methods: [GET], paths: [/public/] }
    - { cidr: 10.0.0.0/8, ports: [5432] }
  deny:
    - { host: up.files.example }
"""
CEILING = """version: 1
network:
  preset: public
  allow: [ { cidr: 10.1.2.3, ports: [5432] } ]
  deny: [ { host: secret.files.example } ]
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "ceiling.yaml").write_text(CEILING)
    return tmp_path


def explain(files, *words, ceiling=False):
    limits = ["--ceiling", files / "ceiling.yaml"] if ceiling else []
    return gabion("policy", "explain", "--policy", files / "policy.yaml", *limits, *words)


def test_check_shows_every_rule(files):
    result = gabion("policy", "check", files / "policy.yaml")
    assert result.code == 0
    assert result.lines[0].startswith(f"{files}/policy.yaml: ok, sha256:")
    assert result.lines[1:] == [
        "network: default deny",
        "  allow[0]  api.example.com  443",
        "  allow[1]  *.files.example  80 443  GET  /public/",
        "  allow[2]  10.0.0.0/8  5432",
        "  deny[0]  up.files.example  1-65535",
        "  budget  256 connections, 100/s new, 1073741824 bytes out, 1000 names",
    ]


def test_the_effective_policy_is_a_policy_with_the_same_hash(files):
    first = gabion("policy", "check", "--json", files / "policy.yaml").json
    (files / "effective.json").write_text(json.dumps(first["effective"]))
    assert gabion("policy", "check", "--json", files / "effective.json").json["policy"] == first["policy"]
    assert first["packages"] == []


@pytest.mark.parametrize("words, code, answer", [
    (["--host", "api.example.com"], 0, "allowed: api.example.com by allow[0]"),
    (["--host", "API.example.com.", "--port", "443"], 0, "allowed: api.example.com:443 by allow[0]"),
    (["--host", "api.example.com", "--port", "22"], 1, "net.port_not_allowed by default"),
    (["--host", "evil.example", "--port", "443"], 1, "net.name_not_allowed by default"),
    (["--host", "files.example", "--port", "443"], 1, "net.name_not_allowed by default"),
    (["--host", "up.files.example", "--port", "443"], 1, "net.name_not_allowed by deny[0]: up.files.example"),
    (["--host", "a.files.example", "--port", "443"], 0, "each request is judged too"),
    (["--host", "a.files.example", "--port", "443", "--path", "/public/x"], 0, "by allow[1]"),
    (["--host", "a.files.example", "--port", "443", "--path", "/public/../x"], 1, "net.path_not_allowed"),
    (["--host", "a.files.example", "--port", "443", "--method", "PUT"], 1, "net.method_not_allowed"),
    (["--host", "api.example.com", "--port", "443", "--address", "127.0.0.1"], 1, "net.private_address by floor:loopback"),
    (["--host", "10.1.2.3", "--port", "5432"], 1, "net.private_address by floor:private"),
    (["--host", "169.254.169.254", "--port", "80"], 1, "net.metadata by floor:metadata"),
    (["--host", "::ffff:169.254.169.254", "--port", "80"], 1, "net.metadata by floor:metadata"),
    (["--host", "8.8.8.8", "--port", "53"], 1, "net.address_not_allowed by default"),
    (["--allow", "b.example:22", "--host", "b.example", "--port", "22"], 0, "by allow[3]: b.example  22"),
    (["--net", "none", "--host", "api.example.com", "--port", "443"], 1, "net.name_not_allowed by default"),
    (["--net", "public", "--host", "b.example", "--port", "22"], 0, "by default"),
    (["--resolve", "api.example.com:443=127.0.0.1:1", "--host", "api.example.com", "--port", "443",
      "--address", "127.0.0.1"], 0, "by allow[0]"),
    (["--resolve", "api.example.com:443=127.0.0.1:1", "--host", "api.example.com", "--port", "443",
      "--address", "127.0.0.2"], 1, "floor:loopback"),
    (["--resolve", "evil.example:443=8.8.8.8:1", "--host", "evil.example", "--port", "443"], 1,
     "net.name_not_allowed by default"),
])
def test_explain_names_the_rule(files, words, code, answer):
    result = explain(files, *words)
    assert (result.code, result.err) == (code, ""), result
    assert result.out.startswith("allowed: " if code == 0 else "denied: ")
    assert answer in result.out


@pytest.mark.parametrize("words, code, answer", [
    (["--host", "api.example.com", "--port", "443"], 0, "by allow[0]: api.example.com  443; ceiling:default"),
    (["--host", "10.1.2.3", "--port", "5432"], 0, "ceiling:allow[0]: 10.1.2.3/32  5432"),
    (["--host", "10.1.2.4", "--port", "5432"], 1, "floor:private"),
    (["--host", "secret.files.example", "--port", "443"], 1, "ceiling:deny[0]: secret.files.example  1-65535"),
    (["--host", "b.example", "--port", "443"], 1, "net.name_not_allowed by default"),
])
def test_the_ceiling_must_allow_it_too(files, words, code, answer):
    result = explain(files, *words, ceiling=True)
    assert result.code == code and answer in result.out, result


def test_what_is_resolved_by_hand_is_judged_with_its_address(files):
    to = ["--resolve", "api.example.com:443=127.0.0.1:1", "--json"]
    assert json.loads(explain(files, *to, "--host", "api.example.com", "--port", "443").out)["address_judged"]
    assert not json.loads(explain(files, *to, "--host", "api.example.com", "--port", "80").out)["address_judged"]


def test_explain_as_json(files):
    result = explain(files, "--host", "up.files.example", "--port", "443", "--json")
    answer = json.loads(result.out)
    assert result.code == 1
    assert answer["policy"] == gabion("policy", "check", "--json", files / "policy.yaml").json["policy"]
    assert {k: answer[k] for k in ("what", "allowed", "code", "rule", "side", "rule_text")} == {
        "what": "up.files.example:443", "allowed": False, "code": "net.name_not_allowed", "rule": "deny[0]",
        "side": "sandbox", "rule_text": {"host": "up.files.example", "ports": ["1-65535"]}}


@pytest.mark.parametrize("words, named", [
    ([], "--host is missing"),
    (["--host", "user@a.example"], "--host"),
    (["--host", "b\u00fccher.example"], "xn--"),
    (["--host", "0x7f.1", "--port", "80"], "--host"),
    (["--host", "10.0.0.1"], "--port is missing"),
    (["--host", "a.example", "--path", "/"], "--port is missing"),
    (["--host", "a.example", "--port", "0"], "--port"),
    (["--host", "a.example", "--port", "70000"], "--port"),
    (["--host", "a.example", "--port", "1", "--address", "b.example"], "--address"),
    (["--host", "a.example", "--allow", "https://b.example"], "--allow"),
    (["--host", "a.example", "--resolve", "b.example"], "--resolve"),
    (["--host", "a.example", "--net", "/no/such/file"], "/no/such/file"),
    (["--host", "a.example", "--ceiling", "/no/such/file"], "/no/such/file"),
    (["--host", "a.example", "more"], "more"),
    (["--nonsense"], "--nonsense"),
    (["--host"], "--host"),
])
def test_wrong_questions_are_named(files, words, named):
    result = explain(files, *words)
    assert (result.code, result.out) == (125, ""), result
    assert len(result.err.splitlines()) == 1 and named in result.err


def test_a_ceiling_with_other_members_is_refused(files):
    (files / "ceiling.yaml").write_text("version: 1\nlimits: { pids: 5 }\n")
    result = explain(files, "--host", "a.example", ceiling=True)
    assert result.code == 125
    assert "ceiling.yaml:2: limits: unknown key; allowed: version name network" in result.err


def test_preset_packages_is_shown_with_its_sources(files):
    """Only what this user's own configuration says; passwords in it are not shown."""
    home = files / "home"
    (home / ".cargo").mkdir(parents=True)
    (home / ".npmrc").write_text("registry=https://user:secret@npm.example:8443/\n")
    (home / ".cargo/config.toml").write_text('[registries.x]\nindex = "sparse+https://cargo.example/"\n')
    (files / "packages.yaml").write_text("version: 1\nnetwork: { preset: packages }\n")
    env = {"HOME": str(home), "PIP_INDEX_URL": "https://pip.example/simple", "GOPROXY": "off"}
    result = gabion("policy", "check", files / "packages.yaml", env=env)
    assert result.code == 0
    assert any(line.endswith("  npm.example  8443") for line in result.lines)
    assert f"  packages  npm: {home}/.npmrc:1: npm.example, port 8443" in result.lines
    assert f"  packages  cargo: {home}/.cargo/config.toml:2: cargo.example, port 443" in result.lines
    assert "  packages  pip: $PIP_INDEX_URL: pip.example, port 443" in result.lines
    assert "secret" not in result.out
    checked = gabion("policy", "check", "--json", files / "packages.yaml", env=env).json
    assert "preset" not in checked["effective"]["network"]
    hosts = [rule["host"] for rule in checked["effective"]["network"]["allow"]]
    assert {"npm.example", "cargo.example", "pip.example"} <= set(hosts)
    answer = gabion("policy", "explain", "--net", "packages", "--host", "npm.example", "--port", "8443", env=env)
    assert answer.code == 0 and f"  preset packages: npm: {home}/.npmrc:1: npm.example, port 8443" in answer.lines, answer
    answer = gabion("policy", "explain", "--net", "public", "--host", "npm.example", "--port", "8443", env=env)
    assert answer.code == 0 and answer.lines[-1].startswith("  preset public: "), answer


def test_diff_lists_what_changed(files):
    (files / "new.yaml").write_text(POLICY.replace("api.example.com", "b.example") + "limits: { pids: 128 }\n")
    result = gabion("policy", "diff", files / "policy.yaml", files / "new.yaml")
    assert result.code == 1
    assert result.lines == ["+ network.allow  added  b.example  443", "- network.allow  removed  api.example.com  443",
                            "- limits.pids  256 -> 128"]
    same = gabion("policy", "diff", files / "policy.yaml", files / "policy.yaml")
    assert (same.code, same.out) == (0, "")
    changes = gabion("policy", "diff", "--json", files / "policy.yaml", files / "new.yaml").json
    assert [c["what"] for c in changes["more"]] == ["network.allow"]
    assert [c["what"] for c in changes["less"]] == ["network.allow", "limits.pids"]


@pytest.mark.parametrize("words", [["diff"], ["diff", "x"], ["check"], ["check", "a", "b"], ["nonsense"], []])
def test_wrong_words_are_usage_errors(words):
    result = gabion("policy", *words)
    assert result.code == 125 and "gabion policy --help" in result.err
