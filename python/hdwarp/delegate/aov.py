"""delegate.aov: Hydra's words for planes: formats, descriptors, bindings. What they say comes from the one AOV registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import warp as wp

from hdwarp.aovs.registry import AovSpec, aov_spec, primvar_name
from hdwarp.errors import ArgumentError, NotSupported
from hdwarp.tables.scene_tables import SceneTables

if TYPE_CHECKING:
    from hdwarp.delegate.render_buffer import RenderBuffer

HD_FORMATS: dict[str, type] = {
    "UNorm8": wp.uint8,
    "UNorm8Vec2": wp.vec2ub,
    "UNorm8Vec3": wp.vec3ub,
    "UNorm8Vec4": wp.vec4ub,
    "Float32": wp.float32,
    "Float32Vec2": wp.vec2f,
    "Float32Vec3": wp.vec3f,
    "Float32Vec4": wp.vec4f,
    "Int32": wp.int32,
}
"""HdFormat names that planes use, and the Warp type of one pixel."""
_FORMAT_OF = {dtype: name for name, dtype in HD_FORMATS.items()}

AVERAGED = ("color", "rgba8")
"""Planes that average several samples a pixel; all others are those of the ray through the pixel's centre."""

PRIMVAR_WIDTHS = {"normals": 3, "displayColor": 3, "displayOpacity": 1}
"""How wide primvars are that shading reads; all others are as wide as authored."""


@dataclass(frozen=True, slots=True)
class AovDescriptor:
    """Hydra's HdAovDescriptor: how a plane is stored unless told otherwise."""

    format: str  # HdFormat's name: a key of HD_FORMATS
    multi_sampled: bool  # averages several samples a pixel
    clear_value: float | int | tuple[float | int, ...]  # of pixels that see nothing; one number a component
    meaning: str = ""
    unit: str = ""

    @property
    def dtype(self) -> type:
        """Warp type of one pixel."""
        return HD_FORMATS[self.format]


@dataclass(frozen=True, slots=True, eq=False)
class AovBinding:
    """Hydra's HdRenderPassAovBinding: where a plane goes, and what pixels that see nothing hold there (None: the descriptor's value)."""

    aov_name: str
    render_buffer: RenderBuffer | wp.array
    clear_value: object = None
    aov_settings: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.aov_settings:
            raise NotSupported(f"AovBinding({self.aov_name!r}, aov_settings={sorted(self.aov_settings)}): no such setting is supported yet")


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A binding as the render pass wants it."""

    array: wp.array
    averaged: bool
    buffer: RenderBuffer | None


AovBindings = Mapping[str, "RenderBuffer | wp.array"] | Sequence[AovBinding]


def format_of(dtype: type) -> str:
    """HdFormat name of a Warp pixel type. Raises ArgumentError for a type that no format has."""
    if dtype not in _FORMAT_OF:
        raise ArgumentError(f"no format has pixels of {getattr(dtype, '__name__', dtype)}; formats: {', '.join(HD_FORMATS)}")
    return _FORMAT_OF[dtype]


def descriptor_of(spec: AovSpec) -> AovDescriptor:
    """The descriptor of a row of the registry; a primvar's width has to be settled."""
    clear = tuple(value if spec.scalar is wp.float32 else int(value) for value in spec.clear_values())
    clear_value = clear[0] if spec.components == 1 else clear
    return AovDescriptor(format_of(spec.dtype), spec.name in AVERAGED, clear_value, spec.meaning, spec.unit)


def plane_spec(tables: SceneTables, aov: str) -> AovSpec:
    """The registry's row of an AOV; a primvar is as wide as the scene has it. Raises ArgumentError for a primvar that no prim has."""
    name = primvar_name(aov) if isinstance(aov, str) else None
    if name is None:
        return aov_spec(aov)
    known = tables.primvar_names() if tables.version else []
    if name not in known:
        have = ", ".join(known) or "none"
        raise ArgumentError(f"no drawn prim has a primvar {name!r} of one to four numbers; such primvars of the scene: {have}")
    return aov_spec(aov, components=tables.primvar(name, PRIMVAR_WIDTHS.get(name)).width)


def array_type(tables: SceneTables, aov: str) -> type:
    """Warp type of one pixel of an AOV. Raises ArgumentError as `plane_spec`."""
    return plane_spec(tables, aov).dtype


def bound_targets(bindings: AovBindings, clear: Mapping[str, object] | None) -> tuple[dict[str, Target], dict[str, object]]:
    """(targets by AOV name, clear values by AOV name) of the bindings; ``clear`` goes before the bindings' own values.

    Raises ArgumentError for what is no binding, a plane bound twice or of the wrong kind, and clear values of planes that are not bound.
    """
    values: dict[str, object] = {}
    if not isinstance(bindings, Mapping):
        if not isinstance(bindings, Sequence) or not all(isinstance(item, AovBinding) for item in bindings):
            raise ArgumentError(f"aov_bindings is a {type(bindings).__name__}; give AOV name -> buffer, or a list of AovBinding")
        values = {item.aov_name: item.clear_value for item in bindings if item.clear_value is not None}
        by_name = {item.aov_name: item.render_buffer for item in bindings}
        if len(by_name) < len(bindings):
            raise ArgumentError(f"a plane is bound twice among {', '.join(item.aov_name for item in bindings)}; copy the buffer instead")
        bindings = by_name
    if clear is not None and not isinstance(clear, Mapping):
        raise ArgumentError(f"clear is a {type(clear).__name__}; give AOV name -> value")
    unbound = [name for name in (clear or {}) if name not in bindings]
    if unbound:
        raise ArgumentError(f"clear names {', '.join(unbound)}; bound are {', '.join(bindings) or 'none'}")
    values.update(clear or {})
    return {name: _target(name, buffer) for name, buffer in bindings.items()}, values


def _target(name: str, buffer: RenderBuffer | wp.array) -> Target:
    aov_spec(name)
    if isinstance(buffer, wp.array):
        return Target(buffer, name in AVERAGED, None)
    if not hasattr(buffer, "is_multi_sampled"):
        raise ArgumentError(f"{name} is bound to a {type(buffer).__name__}; give a RenderBuffer or a wp.array")
    if buffer.is_mapped:
        raise ArgumentError(f"{name}: its render buffer is mapped; unmap() it before rendering into it")
    if buffer.is_multi_sampled and name not in AVERAGED:
        raise ArgumentError(f"{name} is never averaged: allocate its render buffer with multi_sampled=False")
    return Target(buffer.array, buffer.is_multi_sampled, buffer)
