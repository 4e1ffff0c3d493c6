"""Words that the site gives a reader: ``python docs/count_words.py``.

Counts prose and tables of the pages in the sidebar, without code blocks, API, changelog and appendix. A formula is one word.
"""

import re
from pathlib import Path

DOCS = Path(__file__).parent
LEFT_OUT = ("api", "changelog", "contributing")


def words(page: Path) -> int:
    text = (
        re.sub(r"^---\n.*?^---\n", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        if "notebooks" in page.parts
        else page.read_text()
    )
    text = re.sub(r"```{include} (\S+)\n```", lambda found: (page.parent / found[1]).read_text(), text)
    text = re.sub(r"^```.*?^```", " ", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\$\$[^$]+\$\$|\$[^$]+\$|`[^`]+`", " x ", text)
    text = re.sub(r"<[^>]*>|\]\([^)]*\)", " ", text)
    return len(re.findall(r"\S*\w\S*", text))


def pages() -> list[Path]:
    """The pages in the sidebar, and those that they list."""
    found: list[Path] = []
    for page in (DOCS / "index.md", DOCS / "claims.md"):
        trees = re.findall(r"```{toctree}\n(.*?)```", page.read_text(), re.DOTALL)
        names = [line.strip() for tree in trees for line in tree.splitlines() if line.strip() and not line.startswith(":")]
        found += [page, *(DOCS / f"{name}.md" for name in names if name != "claims")]
    return [page for page in found if page.relative_to(DOCS).parts[0].removesuffix(".md") not in LEFT_OUT]


if __name__ == "__main__":
    counts = {page.relative_to(DOCS).as_posix(): words(page) for page in pages()}
    for name, count in sorted(counts.items(), key=lambda one: -one[1]):
        print(f"{count:7,}  {name}")
    print(f"{sum(counts.values()):7,}  in all")
