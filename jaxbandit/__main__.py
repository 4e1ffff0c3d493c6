"""``python -m jaxbandit``: the command line, also where its script is not on the path."""

from jaxbandit.cli import main

if __name__ == "__main__":
    main()
