"""What the checks share: which files are ours, and C text without its comments and strings."""
import pathlib
import re
import subprocess

TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def files(root, *suffixes):
    """Files below root with one of the suffixes, as git sees them: tracked, or new and not ignored."""
    root = pathlib.Path(root)
    git = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True)
    if git.returncode == 0:
        names = [root / name for name in git.stdout.splitlines()]
    else:  # an unpacked archive
        names = [p for p in root.rglob("*") if not p.relative_to(root).parts[0].startswith("build")]
    return sorted({p for p in names if p.suffix in suffixes and p.is_file()})


def blank(text):
    """The text with comments and the insides of literals turned to spaces; lines and columns stay where they were."""
    def spaces(m):
        keep = 1 if m.group()[0] in "\"'" else 0
        body = re.sub(r"[^\n]", " ", m.group()[keep:len(m.group()) - keep])
        return m.group()[:keep] + body + m.group()[len(m.group()) - keep:] if keep else body
    return TOKEN.sub(spaces, text)


def line_comments(text):
    """Numbers of the lines that hold a // comment."""
    return [text.count("\n", 0, m.start()) + 1 for m in TOKEN.finditer(text) if m.group().startswith("//")]


def functions(text):
    """(first line, last line, name) of each function: our style opens it with `) {` and closes it in column 0."""
    depth, start = 0, None
    for n, line in enumerate(blank(text).splitlines(), 1):
        if line.lstrip().startswith("#"):
            continue
        if line[:1].isalpha() or line[:1] == "_":
            name = re.search(r"(\w+)\s*\(", line)
            start = (n, name.group(1) if name else "?") if depth == 0 else start
        depth += line.count("{") - line.count("}")
        if line.rstrip() == "}" and depth <= 0 and start:
            yield start[0], n, start[1]
            start, depth = None, 0
