"""One compilation for all accelerators of a kind: compiled for the first device, loaded on the others.

``jax.jit`` compiles for every device separately. Here the executable of one device is serialized, and loaded for another device
with that device's assignment, as JAX's persistent compilation cache does on GPUs. Devices then run the same machine code. Where a
version of JAX or a device does not support this, each device compiles.
"""

import collections
import io
import pickle
import threading
import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.experimental import serialize_executable

from jaxbandit._core.fields import float_dtype
from jaxbandit._engine import devices

NOT_LOADED = "compiles by itself"
MOST = 64  # programs whose executables are kept here


class _Loader(pickle.Unpickler):
    """Reads what ``serialize_executable.serialize`` wrote, for another device of the same kind."""

    def __init__(self, data: bytes, device: Any):
        super().__init__(io.BytesIO(data))
        self.device = device

    def persistent_load(self, pid: Any) -> Any:
        if pid[0] == "exec":
            from jax._src.compiler import get_compile_options
            from jax._src.lib import xla_client  # pyright: ignore[reportPrivateImportUsage]

            options = get_compile_options(1, 1, np.array([[self.device.id]]))
            return self.device.client.deserialize_executable(pid[1], xla_client.DeviceList((self.device,)), options)
        return self.device.client if pid[0] == "client" else self.device


class _Shared:
    """The executables of one program by device."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.first: Any = None  # the device that compiled
        self.compiled: Any = None  # for it
        self.data: bytes | None = None  # the same, to be loaded on others; None: that is not possible
        self.calls: dict[Any, Callable[[Any], Any]] = {}

    def call_for(self, device: Any, jitted: Any, arguments: Any, options: dict[str, Any]) -> Callable[[Any], Any]:
        with self.lock:
            if device not in self.calls:
                self.calls[device] = self._made(device, jitted, arguments, options)
            return self.calls[device]

    def _made(self, device: Any, jitted: Any, arguments: Any, options: dict[str, Any]) -> Callable[[Any], Any]:
        if self.compiled is None:
            self.first, self.compiled = device, jitted.lower(*arguments, **options).compile()
            try:
                self.data = serialize_executable.serialize(self.compiled)[0]
            except Exception:  # private parts of JAX may change, or a device may not serialize: then each compiles
                self.data = None
            return lambda arguments: self.compiled(*arguments)
        data = self.data
        if data is None:
            return lambda arguments: jitted(*arguments, **options)
        loaded: Any = None

        def call(arguments: Any) -> Any:
            nonlocal loaded
            try:
                loaded = loaded or _Loader(data, device).load()[0].load()
                return jax.tree.unflatten(self.compiled.out_tree, loaded.call(*jax.tree.leaves(arguments)))
            except Exception as error:  # as above, and a device may not load the program of another one
                self.calls[device] = lambda arguments: jitted(*arguments, **options)
                text = f"{device} {NOT_LOADED}, because the program of {self.first} cannot be loaded there: {error}"
                warnings.warn(text, stacklevel=2)
                return self.calls[device](arguments)

        return call


_programs: collections.OrderedDict[Any, _Shared] = collections.OrderedDict()
_finding = threading.Lock()


def call(jitted: Any, *arguments: Any, **options: Any) -> Any:
    """``jitted(*arguments, **options)``, where ``options`` are static; on one of several accelerators without compiling again."""
    device = _one_of_several(arguments)
    if device is None:
        return jitted(*arguments, **options)
    leaves, structure = jax.tree.flatten(arguments)
    shapes = tuple((leaf.shape, leaf.dtype, leaf.aval.weak_type) for leaf in leaves)
    key = jitted, device.device_kind, structure, shapes, tuple(sorted(options.items())), float_dtype()
    with _finding:
        shared = _programs.setdefault(key, _Shared())
        _programs.move_to_end(key)
        while len(_programs) > MOST:
            _programs.popitem(last=False)
    return shared.call_for(device, jitted, arguments, options)(arguments)


def forget() -> None:
    """Drop all executables."""
    with _finding:
        _programs.clear()


def _one_of_several(arguments: Any) -> Any:
    """The device of the arguments, if it is one of several accelerators and they are all there; else None."""
    if devices.platform() == "cpu" or len(devices.alike_devices()) < 2:
        return None
    leaves = jax.tree.leaves(arguments)
    if not all(isinstance(leaf, jax.Array) for leaf in leaves):
        return None
    places = {device for leaf in leaves for device in leaf.devices()}
    return places.pop() if len(places) == 1 else None
