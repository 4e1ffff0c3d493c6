"""Run the first Python block of a page with the installed package, not the checkout: the last step of ``make release``.

python docs/run_first_block.py README.md
"""

import re
import sys
from pathlib import Path


def main() -> None:
    page = Path(sys.argv[1]).resolve()
    sys.path = [place for place in sys.path if Path(place or ".").resolve() not in (page.parent, Path(__file__).parent)]
    import jaxbandit

    if Path(jaxbandit.__file__).is_relative_to(page.parent / "jaxbandit"):
        sys.exit(f"{jaxbandit.__file__} is the checkout; run this in an environment with the wheel")
    block = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)[0]
    exec(compile(block, str(page), "exec"), {})
    print(f"jaxbandit {jaxbandit.__version__} from {jaxbandit.__file__}: the first block of {page.name} runs")


if __name__ == "__main__":
    main()
