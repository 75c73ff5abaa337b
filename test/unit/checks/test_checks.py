#!/usr/bin/python3
"""Each check must refuse a small bad tree, name the place, and accept the same tree when it is good."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else __file__).resolve()
TOOLS = (ROOT if ROOT.is_dir() else ROOT.parents[3]) / "tools"
LAYERS = "base:\njson: base\nhttp: base\nrun: base json http\ncli: base run\n"


class Checks(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="gabion-checks-"))
        self.addCleanup(shutil.rmtree, self.root)
        self.put("tools/layers.txt", LAYERS)
        shutil.copy(TOOLS.parent / ".clang-format", self.root)

    def put(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def check(self, tool):
        done = subprocess.run([TOOLS / tool, self.root], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout

    def refuses(self, tool, name, text, complaint):
        self.put(name, text)
        code, out = self.check(tool)
        self.assertEqual(code, 1, out)
        self.assertIn(complaint, out)
        (self.root / name).unlink()

    def accepts(self, tool, name, text):
        self.put(name, text)
        code, out = self.check(tool)
        self.assertEqual(code, 0, out)
        (self.root / name).unlink()

    def test_layers_refuse_upward_and_private_includes(self):
        tool = "check-layers.py"
        self.refuses(tool, "src/json/a.c", '#include "run/run.h"\n', "src/json/a.c:1: json may not include run")
        self.refuses(tool, "src/run/a.c", '\n#include "json/tree.h"\n', "src/run/a.c:2: tree.h is private to json")
        self.refuses(tool, "src/new/a.c", "", "component 'new' is not in tools/layers.txt")
        self.refuses(tool, "src/run/a.c", '#include "http/conn.h"\n', "conn.h is private to http; include http/http.h")
        self.accepts(tool, "src/run/a.c", '#include "http/http.h"\n#include "http/server.h"\n')
        self.accepts(tool, "src/run/a.c", '#include "json/json.h"\n#include "base/err.h"\n#include "own.h"\n')

    def test_layers_refuse_foreign_libraries(self):
        tool = "check-layers.py"
        self.refuses(tool, "src/run/a.c", "#include <jansson.h>\n", "src/run/a.c:1: <jansson.h> belongs")
        self.refuses(tool, "src/json/a.c", "#include <openssl/ssl.h>\n", "src/json/a.c:1: <openssl/ssl.h> belongs")
        self.refuses(tool, "src/run/a.c", "#include <llhttp.h>\n", "<llhttp.h> belongs")
        self.refuses(tool, "src/seccomp.c", "#include <seccomp.h>\n", "is not in tools/layers.txt")
        self.refuses(tool, "src/base/a.c", "#include <cmocka.h>\n", "<cmocka.h> belongs")
        self.accepts(tool, "src/json/a.c", "#include <jansson.h>\n#include <linux/seccomp.h>\n")
        self.accepts(tool, "tools/filter-gen.c", "#include <seccomp.h>\n")
        self.accepts(tool, "test/unit/json/test_a.c", "#include <cmocka.h>\n#include <jansson.h>\n")

    def test_layers_refuse_cycles_and_vague_names(self):
        tool = "check-layers.py"
        self.refuses(tool, "src/base/utils.c", "", "src/base/utils.c:1: a name that says nothing")
        self.refuses(tool, "tools/layers.txt", "base: json\njson: base\n", "cycle base -> json -> base")

    def test_banned_calls_are_found_outside_comments_and_strings(self):
        tool = "check-banned.py"
        self.refuses(tool, "src/base/a.c", "int a;\nint b = atoi (s);\n", "src/base/a.c:2: atoi() is banned")
        self.refuses(tool, "src/json/a.c", "x = fork();\n", "src/json/a.c:1: fork() only in")
        self.refuses(tool, "src/run/a.c", 'x = getenv("A");\n', "only in one file of src/cli")
        self.accepts(tool, "src/run/a.c", 'x = vfork();\ny = "system(";\n/* strcpy() is banned */\np->signal(1);\n')
        self.accepts(tool, "src/cli/a.c", 'x = getenv("A");\nmy_system(1);\n')
        self.put("src/cli/first.c", 'x = getenv("A");\n')
        self.refuses(tool, "src/cli/second.c", 'x = getenv("A");\n', "src/cli/second.c:1: getenv() only in one file")

    def test_line_comments_tabs_and_marks_are_refused_everywhere(self):
        tool = "check-banned.py"
        self.refuses(tool, "fuzz/a.c", "int a; // no\n", "fuzz/a.c:1: use /* */")
        self.refuses(tool, "test/a.c", "\n\tint a;\n", "test/a.c:2: tab")
        self.refuses(tool, "src/base/a.h", "/* " + "TO" + "DO */\n", "src/base/a.h:1: TO" + "DO")
        self.accepts(tool, "src/base/a.c", 'const char *url = "http://example.com";\n')

    def test_sizes(self):
        tool = "check-size.py"
        body = "        a();\n"
        self.refuses(tool, "src/base/a.c", "int a;\n" * 501, "src/base/a.c:501: 501 lines, budget 500")
        self.refuses(tool, "src/base/a.h", "int a;\n" * 151, "151 lines, budget 150")
        self.refuses(tool, "src/base/a.c", "\nint long_one(int a,\n             int b) {\n" + body * 78 + "}\n",
                     "src/base/a.c:2: long_one() has 81 lines, budget 80")
        self.accepts(tool, "src/base/a.c", "int f(void) {\n" + body * 78 + "}\n")
        self.accepts(tool, "src/base/a.c", "/* layers: allow-long generated */\n" + "int a;\n" * 501)
        self.accepts(tool, "src/base/a.c", "static const int t[] = {\n" + "        1,\n" * 200 + "};\n")
        self.refuses(tool, "src/agent/a.c", "/* layers: allow-long generated */\n" + "int a;\n" * 3000,
                     "src/agent/: 3001 lines, budget 3000")

    def test_format(self):
        tool = "check-format"
        self.refuses(tool, "src/base/a.c", "int  a ;\n", "src/base/a.c:1:")
        self.accepts(tool, "src/base/a.c", "int a;\n")


if __name__ == "__main__":
    unittest.main()
