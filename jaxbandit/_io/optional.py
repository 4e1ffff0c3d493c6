"""Optional dependencies: imported when they are used, with an error that names the extra to install."""

import importlib
from types import ModuleType


def need(module: str, extra: str, what: str) -> ModuleType:
    """Import the library ``module``; the error for a missing one names the extra to install.

    >>> need("json", "data", "reading").__name__
    'json'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{what} needs {module.partition('.')[0]}: pip install 'jaxbandit[{extra}]'") from error
