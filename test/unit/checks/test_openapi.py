#!/usr/bin/python3
"""api/openapi.yaml and what gabiond serves are the same: paths, methods, verbs; and the document is sound.
usage: test_openapi.py ROOT GABIOND"""
import pathlib
import re
import subprocess
import sys
import unittest

import yaml

ROOT, GABIOND = pathlib.Path(sys.argv.pop(1)), sys.argv.pop(1)
METHODS = ("get", "put", "post", "delete", "patch")
DOC = yaml.safe_load((ROOT / "api/openapi.yaml").read_text())


def operations():
    for path, item in DOC["paths"].items():
        for method in METHODS:
            if method in item:
                yield method.upper(), path, item, item[method]


def references(node):
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref":
                yield value
            else:
                yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def resolve(ref):
    node = DOC
    assert ref.startswith("#/"), ref
    for part in ref[2:].split("/"):
        node = node[part]
    return node


class OpenApi(unittest.TestCase):
    def test_the_document_says_what_is_served(self):
        served = subprocess.run([GABIOND, "--routes"], check=True, capture_output=True, text=True).stdout.splitlines()
        described = [f"{method} {path} {op['x-gabion-verb']}" for method, path, _, op in operations()]
        self.assertEqual(sorted(served), sorted(described))

    def test_every_reference_leads_somewhere_and_nothing_is_unused(self):
        used = set(references(DOC))
        for ref in used:
            resolve(ref)
        for kind in ("parameters", "requestBodies", "responses", "schemas"):
            for name in DOC["components"][kind]:
                self.assertIn(f"#/components/{kind}/{name}", used)

    def test_operations_are_complete(self):
        seen = set()
        for method, path, item, op in operations():
            where = f"{method} {path}"
            self.assertNotIn(op["operationId"], seen, where)
            seen.add(op["operationId"])
            self.assertTrue(op["summary"].strip().endswith((".", "?")), where)
            self.assertTrue(set(op["tags"]) <= {tag["name"] for tag in DOC["tags"]}, where)
            self.assertEqual(op.get("security") == [], op["x-gabion-verb"] == "open", where)
            named = [resolve(p["$ref"]) if "$ref" in p else p for p in item.get("parameters", [])]
            self.assertEqual([p["name"] for p in named if p["in"] == "path"], re.findall(r"{(\w+)}", path), where)
            for status, reply in op["responses"].items():
                if status != "204":
                    body = resolve(reply["$ref"]) if "$ref" in reply else reply
                    self.assertTrue(all("schema" in c for c in body["content"].values()), f"{where} {status}")

    def test_errors_have_the_shape_of_their_path(self):
        for method, path, _, op in operations():
            ours = path.startswith("/gabion/")
            for status, reply in op["responses"].items():
                if int(status) >= 400 and reply.get("$ref") != "#/components/responses/Health":
                    self.assertEqual("E2b" in reply["$ref"], not ours, f"{method} {path} {status}")


unittest.main()
