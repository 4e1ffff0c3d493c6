"""Libraries that only some functions need: asked for when they are used, missed with one sentence."""

import importlib
from types import ModuleType


def need(module: str, extra: str, what: str) -> ModuleType:
    """The library ``module``; where it is missing, a sentence says which extra brings it.

    >>> need("json", "data", "reading").__name__
    'json'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{what} needs {module.partition('.')[0]}: pip install 'jaxbandit[{extra}]'") from error
