"""Where the project is published. The site, the notebooks for Colab and the tests all take it from here.

The address is a placeholder: nothing is published there yet. When something is, set ``PUBLISHED``; when it is elsewhere, change
``REPOSITORY``, run ``python docs/build_notebooks.py``, and ``tests/docs/test_docs.py`` names the files that still have the old one.
"""

REPOSITORY = "https://github.com/jaxbandit/jaxbandit"
PUBLISHED = False  # no page of the site offers its source before
