"""aovs.user_aovs: planes of a user's own: a `@wp.func` of what a pixel sees, run as one more step of the resolve."""

# Annotations stay objects here: those of the kernel are types that a user's function brings.
import ast
import functools
import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

import warp as wp

from hdwarp.aovs.pixel_runs import Ray, block_count, pixel_run, world_ray
from hdwarp.aovs.registry import ALIASES, AOVS, DATA_TYPE_NAMES, AovSpec
from hdwarp.errors import ArgumentError
from hdwarp.launch import Step, prepare
from hdwarp.tables.structs import ViewRow


@wp.struct
class ShadeHit:
    """What a pixel sees, as a shade function is given it. Normals are as authored: where the back of a surface is seen they look away."""

    position: wp.vec3f  # from the camera, along the axes of the world [m]
    distance: wp.float32  # length of the ray to the hit [m]
    to_viewer: wp.vec3f  # unit, against the ray
    normal: wp.vec3f  # of shading, world, unit
    geometric_normal: wp.vec3f  # world, unit
    barycentric: wp.vec2f  # these and the ids are as the planes of their names have them
    prim_id: wp.int32
    instance_id: wp.int32
    element_id: wp.int32
    triangle_id: wp.int32
    material_id: wp.int32
    body_id: wp.int32
    instance_row: wp.int32
    world_id: wp.int32
    base_color: wp.vec3f  # of the material, textures among it, linear Rec.709
    roughness: wp.float32


_PLANES = {
    "position": "Peye",
    "distance": "distance_to_camera",
    "normal": "normal",
    "geometric_normal": "Ngeom",
    "barycentric": "barycentric",
    "prim_id": "primId",
    "instance_id": "instanceId",
    "element_id": "elementId",
    "triangle_id": "triangleId",
    "material_id": "materialId",
    "body_id": "bodyId",
    "world_id": "worldId",
    "base_color": "albedo",
    "roughness": "roughness",
}
"""Field of `ShadeHit` -> the plane that it is read from; those that are not here come from the ray and the visibility record."""


@wp.struct
class HitPlanes:
    """The planes of these fields, flat over pixels; null where the function does not read them."""

    position: wp.array[wp.vec3f]  # in the camera's axes
    distance: wp.array[wp.float32]
    normal: wp.array[wp.vec3f]
    geometric_normal: wp.array[wp.vec3f]
    barycentric: wp.array[wp.vec2f]
    prim_id: wp.array[wp.int32]
    instance_id: wp.array[wp.int32]
    element_id: wp.array[wp.int32]
    triangle_id: wp.array[wp.int32]
    material_id: wp.array[wp.int32]
    body_id: wp.array[wp.int32]
    world_id: wp.array[wp.int32]
    base_color: wp.array[wp.vec4f]
    roughness: wp.array[wp.float32]


@wp.struct
class NoParameters:
    """Of functions that take none."""

    nothing: wp.int32


@wp.func
def hit_at(
    planes: HitPlanes,
    view: ViewRow,
    ray: Ray,
    directions: wp.array[wp.vec3f],
    x: wp.int32,
    y: wp.int32,
    pixel: wp.int32,
    instance: wp.int32,
) -> ShadeHit:
    """What pixel (x, y) of the full image sees. ``ray``: the `world_ray` of its row; ``directions``: of RayColumns, null without."""
    hit = ShadeHit()
    hit.instance_row = instance
    if view.rays != 0:
        given = wp.vec3d(directions[view.first_ray + y * view.width + x])
        way = view.direction_dx * given[0] + view.direction_dy * given[1] + view.direction * given[2]
    else:
        way = ray.direction + ray.direction_dx * wp.float64(x)
    hit.to_viewer = -wp.vec3f(wp.normalize(way))
    if planes.position:
        within = planes.position[pixel]
        hit.position = view.right * within[0] + view.up * within[1] + view.back * within[2]
    if planes.distance:
        hit.distance = planes.distance[pixel]
    if planes.normal:
        hit.normal = planes.normal[pixel]
    if planes.geometric_normal:
        hit.geometric_normal = planes.geometric_normal[pixel]
    if planes.barycentric:
        hit.barycentric = planes.barycentric[pixel]
    if planes.prim_id:
        hit.prim_id = planes.prim_id[pixel]
    if planes.instance_id:
        hit.instance_id = planes.instance_id[pixel]
    if planes.element_id:
        hit.element_id = planes.element_id[pixel]
    if planes.triangle_id:
        hit.triangle_id = planes.triangle_id[pixel]
    if planes.material_id:
        hit.material_id = planes.material_id[pixel]
    if planes.body_id:
        hit.body_id = planes.body_id[pixel]
    if planes.world_id:
        hit.world_id = planes.world_id[pixel]
    if planes.base_color:
        base = planes.base_color[pixel]
        hit.base_color = wp.vec3f(base[0], base[1], base[2])
    if planes.roughness:
        hit.roughness = planes.roughness[pixel]
    return hit


@functools.cache
def user_aov_kernel(function: wp.Function, lanes: int) -> wp.Kernel:
    """``function`` for runs of ``lanes`` pixels that see something; the others get the clear value. One module a function, kept."""
    LANES, BLOCKS = lanes, block_count(lanes)
    types = list(function.input_types.values())
    Pixel = wp.float32 if _returned(function) in (float, wp.float32) else _returned(function)
    Parameters = types[1] if len(types) > 1 else NoParameters
    if len(types) > 1:
        shade = function
    else:

        @wp.func
        def shade(hit: ShadeHit, parameters: NoParameters):
            return function(hit)

    # Warp's own compiler flags: nobody knows what the function does to loops over lanes.
    @wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 0})
    def user_aov(
        first: wp.int32,
        step: wp.int32,
        count: wp.int32,
        views: wp.array[ViewRow],
        jobs: wp.int32,
        rows: wp.int32,
        seen_instances: wp.array[wp.int32],  # of the visibility record
        directions: wp.array[wp.vec3f],
        planes: HitPlanes,
        parameters: Parameters,
        clear: Pixel,
        out: wp.array[Pixel],
    ):
        job = first + wp.tid() * step
        if job >= count:
            return
        run = pixel_run(views, job, LANES, BLOCKS, jobs, rows)
        if run.blocks == 0:
            return
        view = views[run.view]
        ray = world_ray(view, run.y)
        for i in range(run.blocks * LANES):
            x = run.x + i
            if x >= run.left and x < run.right:
                instance = seen_instances[run.record + i]
                if instance >= 0:
                    out[run.output + i] = shade(hit_at(planes, view, ray, directions, x, run.y, run.output + i, instance), parameters)
                else:
                    out[run.output + i] = clear

    return user_aov


@dataclass(frozen=True, slots=True, eq=False)
class ShadeFunction:
    """A registered function. ``reads``: fields of `ShadeHit` that it may read."""

    function: wp.Function
    parameters: object  # instance of the struct that it takes; None: it takes none
    reads: tuple[str, ...]

    @property
    def planes(self) -> dict[str, str]:
        """Field -> plane that it has to be given."""
        return {field: _PLANES[field] for field in self.reads if field in _PLANES}

    def key(self) -> Hashable:
        """Changes with the numbers of the parameters, and with which arrays they are; not with what these hold."""
        return self, None if self.parameters is None else bytes(self.parameters.__ctype__())

    def check_device(self, name: str, device: wp.Device) -> None:
        """Raises ArgumentError for arrays of the parameters on another device: kernels would read them as memory of their own."""
        for member in () if self.parameters is None else self.parameters._cls.vars:
            value = getattr(self.parameters, member)
            if isinstance(value, wp.array) and value.device != device:
                raise ArgumentError(f"AOV '{name}': parameters.{member} is on {value.device}, the render on {device}")


def user_aov_step(
    name: str,
    function: ShadeFunction,
    planes: Mapping[str, wp.array],
    seen_instances: wp.array,
    directions: wp.array | None,
    clear: tuple[float, ...],
    lanes: int,
) -> Step:
    """What fills the plane ``name``. ``planes``: flat, by AOV: this one and those that the function reads. Compiles where that is not done.

    Raises ArgumentError for a function that does not compile, and for parameters on another device.
    """
    out = planes[name]
    function.check_device(name, out.device)
    kernel = user_aov_kernel(function.function, lanes)
    try:
        prepare(kernel, out.device)
    except Exception as error:
        raise ArgumentError(f"AOV '{name}': its shade function does not compile: {error}") from error
    read = HitPlanes()
    for field, plane in function.planes.items():
        setattr(read, field, planes[plane])
    parameters = NoParameters() if function.parameters is None else function.parameters
    return kernel, [seen_instances, directions, read, parameters, clear[0] if len(clear) == 1 else out.dtype(*clear), out]


def register_aov(
    name: str,
    shade_function: wp.Function,
    *,
    components: int = 1,
    parameters: object = None,
    clear: object = 0.0,
    unit: str = "",
    meaning: str = "",
) -> None:
    """Make a plane of a function of what pixels see. From then on ``name`` is an AOV wherever one is named: `render(aovs=)`,
    `SensorCamera.allocate`, render buffers, sources of render vars, files.

    ``shade_function``: a ``@wp.func`` ``f(hit: hdwarp.ShadeHit, parameters: P) -> float`` (or vec2f, vec3f, vec4f), without the second
    argument where ``parameters`` is None; it is called for the pixels that see something. ``components``: how wide it is.
    ``parameters``: an instance of the ``@wp.struct`` P. What its arrays hold is read at each update, by captured CUDA graphs too. Numbers
    and arrays may be replaced between updates, which costs preparing anew; a graph keeps those it was captured with. ``clear``: what pixels
    hold that see nothing, a number or one a component. ``unit``, ``meaning``: told in files. A name that a user has registered before is
    registered anew.

    Raises ArgumentError for what is no such function, a name that is taken, and parameters that are not what the function takes. What is
    wrong within the function is found when it is compiled: at the first use, which raises ArgumentError.
    """
    _check_name(name)
    function = _checked(name, shade_function)
    _check_parameters(name, function, parameters)
    width = _width(_returned(function))
    if width == 0:
        returned = _returned(function)
        how = "does not say what it returns" if returned is None else f"returns {_named(returned)}"
        raise ArgumentError(f"AOV '{name}': {_signature(function)} {how}; annotate it '-> float', wp.vec2f, wp.vec3f or wp.vec4f")
    if components != width:
        raise ArgumentError(f"AOV '{name}': {_signature(function)} returns {_named(_returned(function))}: give components={width}")
    shade = ShadeFunction(function, parameters, _fields_read(function))
    spec = AovSpec(name, components=width, clear=clear, unit=unit, meaning=meaning, shade=shade)
    spec.clear_values()  # says what is wrong with it
    AOVS[name] = spec


def unregister_aov(name: str) -> None:
    """Forget an AOV that `register_aov` made. Raises ArgumentError for others."""
    if name not in AOVS or AOVS[name].shade is None:
        own = ", ".join(known for known, spec in AOVS.items() if spec.shade is not None) or "none"
        raise ArgumentError(f"no AOV {name!r} was registered; registered are {own}")
    del AOVS[name]


def function_of(name: str) -> ShadeFunction | None:
    """That of a registered AOV, None for other planes."""
    return AOVS[name].shade if name in AOVS else None


def planes_behind(names: Iterable[str]) -> list[str]:
    """``names`` and the planes that the functions among them read."""
    found = dict.fromkeys(names)
    for function in [function_of(name) for name in found]:
        if function is not None:
            found.update(dict.fromkeys(function.planes.values()))
    return list(found)


def _check_name(name: object) -> None:
    if not isinstance(name, str) or re.fullmatch(r"[A-Za-z_]\w*(:\w+)*", name, re.ASCII) is None:
        raise ArgumentError(f"an AOV cannot be named {name!r}: take letters, digits and '_', with ':' between")
    if name.startswith(("primvars:", "lpe:", "shader:")):
        raise ArgumentError(f"AOV '{name}': what begins with '{name.split(':')[0]}:' is not for registered functions; take another name")
    if (name in AOVS and AOVS[name].shade is None) or name in DATA_TYPE_NAMES:
        raise ArgumentError(f"AOV '{name}' is one of hdWarp's own; take another name")
    if name in ALIASES:
        raise ArgumentError(f"'{name}' is what other renderers call '{ALIASES[name][0]}'; take another name")


def _checked(name: str, function: object) -> wp.Function:
    wanted = "a @wp.func f(hit: hdwarp.ShadeHit, parameters: P)"
    if not isinstance(function, wp.Function) or function.func is None:
        raise ArgumentError(f"AOV '{name}': shade_function is a {type(function).__name__}; give {wanted}")
    types = list(function.input_types.values())
    count = function.func.__code__.co_argcount
    if len(types) < count:
        bare = [argument for argument in function.func.__code__.co_varnames[:count] if argument not in function.input_types]
        raise ArgumentError(f"AOV '{name}': {_signature(function)} does not say of what type {', '.join(bare)} is; give {wanted}")
    if len(types) not in (1, 2):
        raise ArgumentError(f"AOV '{name}': {_signature(function)} takes {len(types)} arguments; give {wanted}, or f(hit: hdwarp.ShadeHit)")
    if types[0] is not ShadeHit:
        raise ArgumentError(f"AOV '{name}': the first argument of {_signature(function)} is no hdwarp.ShadeHit; give {wanted}")
    return function


def _check_parameters(name: str, function: wp.Function, parameters: object) -> None:
    types = list(function.input_types.values())
    if len(types) == 1:
        if parameters is not None:
            raise ArgumentError(f"AOV '{name}': parameters are given, but {_signature(function)} takes none: f(hit, parameters: P)")
        return
    if not hasattr(types[1], "vars"):
        raise ArgumentError(f"AOV '{name}': the second argument of {_signature(function)} is no @wp.struct")
    if parameters is None:
        raise ArgumentError(f"AOV '{name}': {_signature(function)} takes parameters: give parameters=, a {types[1].key}")
    if getattr(parameters, "_cls", None) is not types[1]:
        given = parameters._cls.key if hasattr(parameters, "_cls") else type(parameters).__name__
        raise ArgumentError(f"AOV '{name}': parameters is a {given}; {_signature(function)} takes an instance of its {types[1].key}")


def _returned(function: wp.Function) -> object:
    """What the annotation says."""
    return function.adj.arg_types.get("return")


def _width(returned: object) -> int:
    """Components of a pixel type that planes can have, 0 of others."""
    if returned in (float, wp.float32):
        return 1
    vectors = (wp.vec2f, wp.vec3f, wp.vec4f)
    return next((k for k, vector in enumerate(vectors, 2) if returned is not None and wp.types.types_equal(returned, vector)), 0)


def _named(kind: object) -> str:
    return getattr(kind, "__name__", None) or getattr(kind, "key", None) or str(kind)


def _signature(function: wp.Function) -> str:
    arguments = function.func.__code__.co_varnames[: function.func.__code__.co_argcount]
    return f"{function.func.__name__}({', '.join(arguments)})"


def _fields_read(function: wp.Function) -> tuple[str, ...]:
    """Fields of its first argument that the function names; all of them where it does something else with it, as handing it on."""
    hit = function.func.__code__.co_varnames[0]
    nodes = list(ast.walk(function.adj.tree))
    fields = [node for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == hit]
    names = [node for node in nodes if isinstance(node, ast.Name) and node.id == hit]
    if len(names) > len(fields):
        return tuple(ShadeHit.vars)
    named = {node.attr for node in fields}
    return tuple(field for field in ShadeHit.vars if field in named)
