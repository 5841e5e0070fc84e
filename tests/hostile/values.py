"""Strategies for values as usda writes them: sound ones, and all that an attribute should not have. Text only: nothing imports pxr."""

from __future__ import annotations

from hypothesis import strategies as st

# Finite floats near every border, and what is no number.
NUMBERS = ("0", "-0", "1", "-1", "0.5", "2", "1e-45", "-1e-38", "1e-30", "1e18", "-1e18", "3e38", "-3e38", "1e5", "nan", "inf", "-inf")
DOUBLES = (*NUMBERS, "1e-320", "1e300", "-1e300", "1.7e308")
TAME = ("0", "1", "-1", "0.5", "2", "3", "-0.25")
INTEGERS = ("0", "1", "-1", "2", "3", "4", "7", "2147483647", "-2147483648", "1000000000")
INT64 = (*INTEGERS, "9223372036854775807", "-9223372036854775808")
# Letters of many scripts, with combining marks and letters beyond 16 bits: USD's identifiers are XID.
NAMES = ("Größe", "立方体", "куб", "مكعب", "घन", "กล่อง", "상자", "κύβος", "éclair", "_", "a1", "𠮷野", "x" * 300, "Ⅷ", "name_ſ")
TOKENS = (
    *("inherited", "invisible", "guide", "render", "proxy", "none", "catmullClark", "leftHanded", "X", "Y", "Z", "vertex", "uniform"),
    *("faceVarying", "constant", "varying", "bezier", "bspline", "catmullRom", "pinned", "periodic", "linear", "cubic", "", "nonsense"),
    *("bounds", "cards", "origin", "!resetXformStack!", "xformOp:translate", "orthographic", "perspective", "pattern", "😀", "ü"),
)

_SHAPES = {"2": 2, "3": 3, "4": 4}
_FLOATS = ("float", "double", "half", "timecode")
_ALIASES = {
    **dict.fromkeys(("point3f", "normal3f", "color3f", "vector3f", "texCoord3f", "point3h"), "float3"),
    **dict.fromkeys(("point3d", "normal3d", "color3d", "vector3d", "texCoord3d"), "double3"),
    **dict.fromkeys(("color4f", "quatf", "quath", "quatd"), "float4"),
    "texCoord2f": "float2",
    "half3": "float3",
    "half2": "float2",
    "half4": "float4",
}
TYPES = (
    *("bool", "int", "int64", "uint", "uchar", "float", "double", "half", "string", "token", "asset", "timecode", "pathExpression"),
    *("int2", "int3", "int4", "float2", "float3", "float4", "double2", "double3", "half3", "point3f", "normal3f", "color3f", "vector3f"),
    *("quatf", "quath", "quatd", "matrix2d", "matrix3d", "matrix4d", "texCoord2f", "opaque", "group", "color4f"),
)
WITHOUT_VALUES = ("opaque", "group")


def _tuple(items: list[str]) -> str:
    return f"({', '.join(items)})"


@st.composite
def scalar(draw: st.DrawFn, kind: str, wild: bool = True) -> str:
    """One value of a type that is no array."""
    name = _ALIASES.get(kind, kind)
    if name in _FLOATS:
        if not wild:
            return draw(st.sampled_from(TAME))
        return draw(st.sampled_from(DOUBLES if name == "double" else NUMBERS if name != "half" else NUMBERS[:9]))
    if name in ("int", "uint", "int64", "uchar"):
        if name == "uchar" or not wild:
            return draw(st.sampled_from(("0", "1", "2", "3")))
        if name == "uint":
            return draw(st.sampled_from(("0", "1", "4294967295")))
        return draw(st.sampled_from(INT64 if name == "int64" else INTEGERS))
    if name == "bool":
        return draw(st.sampled_from(("0", "1")))
    if name in ("string", "token"):
        return f'"{draw(st.sampled_from(TOKENS))}"'
    if name == "asset":
        return f"@{draw(st.sampled_from(('', './missing.png', './missing.usda', 'http://x/y', 'nö.exr')))}@"
    if name == "pathExpression":
        return f'"{draw(st.sampled_from(("//", "/Hostile//{isa:Mesh}", "%:x", "~//", "/Hostile/* + /Hostile", "%/Hostile.collection:a")))}"'
    if name.startswith("matrix"):
        side = int(name[6])
        base = [["1" if i == j else "0" for j in range(side)] for i in range(side)]
        for _ in range(draw(st.integers(0, 3))):
            number = draw(st.sampled_from(DOUBLES if wild else TAME))
            base[draw(st.integers(0, side - 1))][draw(st.integers(0, side - 1))] = number
        return _tuple([_tuple(row) for row in base])
    items = [draw(scalar(name[:-1], wild)) for _ in range(_SHAPES[name[-1]])]
    return _tuple(items)


@st.composite
def array(draw: st.DrawFn, kind: str, sizes: tuple[int, ...] = (0, 1, 2, 3, 4, 5, 8, 13), wild: bool = True) -> str:
    """An array: few distinct items, repeated, so that long ones are cheap to draw."""
    size = draw(st.sampled_from(sizes))
    if not size:
        return "[]"
    some = [draw(scalar(kind, wild)) for _ in range(min(size, 4))]
    return "[" + ", ".join((some * (size // len(some) + 1))[:size]) + "]"


def any_value(kind: str, wild: bool = True) -> st.SearchStrategy[str]:
    """A value of a type as `Sdf.ValueTypeNames` writes it; "None" blocks what is weaker."""
    sound = array(kind[:-2], wild=wild) if kind.endswith("[]") else scalar(kind, wild)
    return st.one_of(sound, sound, sound, sound, st.just("None")) if wild else sound


@st.composite
def any_typed(draw: st.DrawFn) -> tuple[str, str | None]:
    """(type, value) of any type at all; None: declared without a value."""
    kind = draw(st.sampled_from(TYPES))
    if kind in WITHOUT_VALUES:
        return kind, None
    if draw(st.booleans()):
        kind += "[]"
    return kind, draw(any_value(kind))


@st.composite
def samples(draw: st.DrawFn, kind: str) -> str:
    """Time samples, those of arrays of changing sizes, some of them blocked."""
    times = draw(st.lists(st.sampled_from(("-1e300", "-3", "0", "1", "1.5", "2", "5", "1e300")), min_size=1, max_size=4, unique=True))
    return "{ " + ", ".join(f"{time}: {draw(any_value(kind))}" for time in sorted(times, key=float)) + " }"
