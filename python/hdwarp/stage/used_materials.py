"""stage.used_materials: the materials that what is drawn uses: found through bindings, counted by use, read when a use begins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from pxr import Usd, UsdShade

from hdwarp.errors import Diagnostic, Diagnostics, OwnedDiagnostics
from hdwarp.stage.bindings import binding_targets, bound_materials
from hdwarp.stage.columns import Gprim
from hdwarp.stage.images import Images
from hdwarp.stage.looks import Light, Material
from hdwarp.stage.materials import read_material
from hdwarp.stage.networks import nodes_outside
from hdwarp.stage.path_map import PathMap
from hdwarp.stage.walk import Drawn

_UNKNOWN = object()


class UsedMaterials:
    """Of one stage, kept from reading to reading."""

    def __init__(self, stage: Usd.Stage, purposes: Sequence[str]) -> None:
        """``purposes``: of bindings, in order of preference."""
        self._stage, self._purposes = stage, tuple(purposes)
        self.images = Images()
        self.forget()

    def forget(self) -> None:
        """Read all anew, but for images."""
        self.found: dict[str, Material] = {}  # by path
        self.told: dict[str, tuple[Diagnostic, ...]] = {}  # by path of the material
        self._bindings: PathMap[tuple[str, tuple[Diagnostic, ...]]] = PathMap()  # asker -> path of its material
        self._targets: object = _UNKNOWN  # what bindings name, looked up when somebody asks
        self._bound: Counter[str] = Counter()  # materials by bindings
        self._given: dict[str, Material] = {}  # of what is no Material prim
        self._nodes: dict[str, frozenset[str]] = {}  # by material: prims that it is made from and that are not below it
        self._uses: Counter[str] = Counter()  # by gprims
        self._in_doubt: set[str] = set()  # whose uses have begun or ceased since the materials were last looked at

    @property
    def bound(self) -> list[str]:
        """Paths of what bindings lead to."""
        return [path for path in self._bound if path]  # without "", the material of what has none

    @property
    def nodes(self) -> frozenset[str]:
        """Paths of prims that materials are made from and that are below none of them."""
        return frozenset().union(*self._nodes.values())

    def sizes(self) -> dict[str, int]:
        """How much is kept, by what."""
        kept = {"bindings": self._bindings, "bound": self._bound, "told": self.told, "uses": self._uses, "nodes": self._nodes}
        return {name: len(items) for name, items in kept.items()}

    def wanted(self) -> set[str] | None:
        """See `binding_targets`."""
        if self._targets is _UNKNOWN:
            self._targets = binding_targets(self._stage, self._bindings)
        return self._targets

    def unbind(self, root: str) -> None:
        """Let go of the bindings at and below ``root``."""
        self._targets = _UNKNOWN
        for _, (material, _) in self._bindings.take(root):
            _count(self._bound, material, -1)

    def count_uses(self, gprim: Gprim, sign: int) -> None:
        """A gprim has come (``sign`` 1) or gone (-1)."""
        if not gprim.material and not gprim.subset_materials:
            return
        for path in {gprim.material, *gprim.subset_materials} - {""}:
            _count(self._uses, path, sign)
            if (path in self._uses) != (path in self.found):
                self._in_doubt.add(path)

    def finder(self, drawn: list[Drawn], told: OwnedDiagnostics) -> Callable[[Drawn], tuple[str, tuple[str, ...]]]:
        """Bindings are computed once for each prim that has some, for all at once, and kept."""
        askers: dict[str, None] = {}
        for item in drawn:
            if not _may_be_bound(item):
                continue
            askers.update(dict.fromkeys(asker for asker in _askers(item) if asker and asker not in self._bindings))
        paths, log = list(askers), Diagnostics()
        bound = bound_materials(self._stage, paths, self._purposes, log) if paths else []
        said: dict[str, list[Diagnostic]] = {}
        for item in log:
            said.setdefault(item.path, []).append(item)
        for asker, path in zip(paths, bound, strict=True):
            self._targets = _UNKNOWN
            self._bindings[asker] = path, tuple(said.get(asker, ()))
            _count(self._bound, path, 1)
        nothing = "", ()

        def find(item: Drawn) -> tuple[str, tuple[str, ...]]:
            if not _may_be_bound(item):
                return "", item.materials
            told.owner = item.owner
            found = [self._bindings.get(asker, nothing) for asker in _askers(item)]
            for _, items in found:
                if items:
                    told.extend(items)
            return found[0][0], tuple(path for path, _ in found[1:])

        return find

    def update(self, changes: dict[str, Material | None], dirty: bool, given: dict[str, Material], time: Usd.TimeCode) -> None:
        """Read the materials that gprims use, those known already only when ``dirty``. ``given``: new ones that are no prims."""
        doubtful, self._in_doubt = self._in_doubt, set()
        given = {path: material for path, material in given.items() if path in self._uses}
        self._given = {path: item for path, item in self._given.items() if path in self._uses} | given
        for path in doubtful - self._uses.keys():
            self._nodes.pop(path, None)
            if self.found.pop(path, None) is not None:
                changes[path] = None
                self.told.pop(path, None)
        changes.update(given)
        self.found.update(given)
        for path in sorted(self._uses.keys() if dirty else doubtful & self._uses.keys() - self.found.keys()):
            if path in self._given:
                continue
            log, material = Diagnostics(), UsdShade.Material(self._stage.GetPrimAtPath(path))
            changes[path] = self.found[path] = read_material(material, path, time, self.images, log)
            for kept, found in ((self._nodes, nodes_outside(material, path)), (self.told, tuple(log))):
                kept.pop(path, None)
                if found:
                    kept[path] = found

    def keep_images(self, lights: Iterable[Light]) -> None:
        """Let go of the images that neither a material nor one of ``lights`` shows any more."""
        textures = [texture for material in self.found.values() for texture in material.textures.values()]
        textures += [light.texture for light in lights if light.texture is not None]
        self.images.keep({image for texture in textures for image in texture.images})


def _count(counter: Counter[str], name: str, sign: int) -> None:
    counter[name] += sign
    if not counter[name]:
        del counter[name]


def _may_be_bound(item: Drawn) -> bool:
    return bool(item.state.binder or item.state.collections or item.slots)


def _askers(item: Drawn) -> Iterator[str]:
    """The prims whose bindings are the gprim's and its slots': itself where collections matter, else the nearest with bindings; "" none."""
    yield item.path if item.state.collections else item.state.binder
    for name, bound in item.slots:
        yield f"{item.path}/{name}" if bound or item.state.collections else ""
