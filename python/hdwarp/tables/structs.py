"""tables.structs: the device tables as kernels see them. Plain columns, one row an item; no USD, no host code."""

from __future__ import annotations

import warp as wp

from hdwarp.stage.columns import GeometryKind
from hdwarp.stage.looks import LightKind

vec8f = wp.types.vector(length=8, dtype=wp.float32)
vec8i = wp.types.vector(length=8, dtype=wp.int32)
vec16f = wp.types.vector(length=16, dtype=wp.float32)

TILE_WIDTH = wp.constant(16)  # tiles of the one grid of the full image, to which ray coefficients are anchored
TILE_HEIGHT = wp.constant(8)

MESH = wp.constant(int(GeometryKind.MESH))
SPHERE = wp.constant(int(GeometryKind.SPHERE))
CUBE = wp.constant(int(GeometryKind.CUBE))
CONE = wp.constant(int(GeometryKind.CONE))
CAPSULE = wp.constant(int(GeometryKind.CAPSULE))
PLANE = wp.constant(int(GeometryKind.PLANE))
POINTS = wp.constant(int(GeometryKind.POINTS))
TUBES = wp.constant(int(GeometryKind.TUBES))
RIBBONS = wp.constant(int(GeometryKind.RIBBONS))

DISTANT_LIGHT = wp.constant(int(LightKind.DISTANT))
POINT_LIGHT = wp.constant(int(LightKind.POINT))
SPHERE_LIGHT = wp.constant(int(LightKind.SPHERE))
DISK_LIGHT = wp.constant(int(LightKind.DISK))
RECT_LIGHT = wp.constant(int(LightKind.RECT))
CYLINDER_LIGHT = wp.constant(int(LightKind.CYLINDER))
LINE_LIGHT = wp.constant(int(LightKind.LINE))
DOME_LIGHT = wp.constant(int(LightKind.DOME))
MESH_LIGHT = wp.constant(int(LightKind.MESH))

# How many of what a leaf is made of lie side by side in it, see MeshColumns.
TRIANGLE_LANES, POINT_LANES, TUBE_LANES, RIBBON_LANES = wp.constant(16), wp.constant(16), wp.constant(8), wp.constant(4)
TUBE_POINTS, RIBBON_POINTS = wp.constant(GeometryKind.TUBES.point_count), wp.constant(GeometryKind.RIBBONS.point_count)


@wp.func
def is_shape(kind: wp.int32) -> wp.bool:
    """The predicates of `GeometryKind`; -1 is none of them."""
    return kind > MESH and kind < POINTS


@wp.func
def is_swept(kind: wp.int32) -> wp.bool:
    return kind >= POINTS


@wp.func
def swept_point_count(kind: wp.int32) -> wp.int32:
    """`GeometryKind.point_count` of points and curves."""
    return wp.where(kind == POINTS, 1, wp.where(kind == TUBES, TUBE_POINTS, RIBBON_POINTS))


@wp.struct
class MeshColumns:
    """Unique meshes. One 8-wide BVH each, all in the same arrays; then what a hit is decoded with.

    A *node* is six vec8f (lower x, y, z, upper x, y, z of its eight children) and a vec8i of children: >= 0 a node,
    < 0 leaf -1 - child, EMPTY_CHILD none (its box is inverted, so that no test passes). A *leaf* is up to 16 triangles side by side: nine
    vec16f (a.x a.y a.z b.x ... c.z; lane = triangle). *slot* = 16 * leaf + lane names a triangle.

    Points and curves are meshes too, of balls or pieces in the place of triangles (see `MeshGeometry`), also where the names of columns
    say triangle. The 144 numbers of a leaf hold, number by number, those of its balls or pieces side by side: of up to 16 POINTS x, y, z,
    radius; of up to 8 TUBES four times that, then the piece; of up to 4 RIBBONS eight times x, y, z, then the piece.
    """

    nodes: wp.array[vec8f]  # (6 * node_count,)
    children: wp.array[vec8i]  # (node_count,)
    leaf_vertices: wp.array[vec16f]  # (9 * leaf_count,) object space less the mesh's centre, over its scale; unused lanes never hit
    leaf_count: wp.array[wp.int32]  # (leaf_count,) triangles in the leaf, 1 to as many as lie side by side
    slot_triangle: wp.array[wp.int32]  # (16 * leaf_count,) triangle within its mesh, authored face order (triangleId); -1 unused lane
    # One row a mesh: where its parts start.
    root: wp.array[wp.int32]  # node
    triangle_start: wp.array[wp.int32]
    point_start: wp.array[wp.int32]
    corner_start: wp.array[wp.int32]
    face_start: wp.array[wp.int32]
    has_subsets: wp.array[wp.int32]
    # One row a triangle; numbers are within the mesh.
    triangle_face: wp.array[wp.int32]
    triangle_points: wp.array[wp.vec3i]
    triangle_corners: wp.array[wp.vec3i]
    # One row a face of the meshes that have subsets (face_start counts these rows).
    face_subset: wp.array[wp.int32]  # slot of the subset that owns the face, -1 none


@wp.func
def inverse_of(world_from_object: wp.mat33f) -> wp.mat33f:
    """object_from_world, by way of double: rounded once."""
    inverse = wp.inverse(wp.mat33d(world_from_object))
    out = wp.mat33f()
    for i in range(3):
        for j in range(3):
            out[i, j] = wp.float32(inverse[i, j])
    return out


@wp.struct
class InstanceColumns:
    """Where instances are, and what they are. Copies of one prim in many worlds are many of the first and one of the second."""

    # One row an instance. world = world_from_object * object + translation, in the frame of the instance's world [m].
    world_from_object: wp.array[wp.mat33f]
    translation: wp.array[wp.vec3d]
    world: wp.array[wp.int32]  # -1 global
    source: wp.array[wp.int32]  # its row in what follows; an instance that is no copy is its own source
    # One row a source: the rows of the render index.
    kind: wp.array[wp.int32]  # MESH, SPHERE, CUBE, CONE, CAPSULE, PLANE, POINTS, TUBES, RIBBONS; -1 draws nothing
    flags: wp.array[wp.int32]  # SINGLE_SIDED, NOT_VISUAL, ...: bits that views hide, or look through the back faces of
    geometry: wp.array[wp.int32]  # mesh row (points and curves have one too), -1 for shapes
    shape: wp.array[wp.vec4f]  # CONE, CAPSULE: radius at the lower and the upper end, half the height; PLANE: half width and length
    rank: wp.array[wp.int32]  # order in which equal depths are settled: the lower wins
    body: wp.array[wp.int32]  # given out; -1 none
    prim_id: wp.array[wp.int32]  # given out
    instance_id: wp.array[wp.int32]  # given out
    material: wp.array[wp.int32]  # row, -1 none
    subset_start: wp.array[wp.int32]  # into subset_material; only read where the mesh has subsets
    subset_material: wp.array[wp.int32]  # material row of each subset slot, -1: the instance's own material
    light_links: wp.array[wp.int32]  # by source: a bit for each set of linked prims that it is in, see LightColumns.link


SINGLE_SIDED = wp.constant(1)
NOT_VISUAL = wp.constant(2)
NOT_COLLIDER = wp.constant(4)
ONE_SIDED = wp.constant(8)  # its back faces are looked through whatever the settings
OTHER_LOD = wp.constant(16)  # in a UsdLod item that is not chosen, and no collider; NOT_VISUAL then says so too
FIRST_GROUP = 5  # bits from here on are a sensor's own: what it excludes


@wp.struct
class PreviousColumns:
    """Where everything was in the frame before, rows as in InstanceColumns; null arrays: where it is now."""

    # One row an instance.
    world_from_object: wp.array[wp.mat33f]
    translation: wp.array[wp.vec3d]
    # One row a source.
    point_start: wp.array[wp.int32]  # where the previous points of a deforming mesh start, -1: its points are what they were
    points: wp.array[wp.vec3f]  # in the object space of leaf_vertices as they are now: the same centre and scale taken off


@wp.struct
class MaterialColumns:
    """One row a material: constants, linear Rec.709, and which textures take their place."""

    diffuse_color: wp.array[wp.vec3f]
    uses_display_color: wp.array[wp.int32]  # 1: the base colour is the pixel's: the displayColor primvar, or of the diffuse texture
    emissive_color: wp.array[wp.vec3f]  # 0 where a texture takes its place
    specular_color: wp.array[wp.vec3f]
    use_specular_workflow: wp.array[wp.int32]
    metallic: wp.array[wp.float32]
    roughness: wp.array[wp.float32]
    clearcoat: wp.array[wp.float32]
    clearcoat_roughness: wp.array[wp.float32]
    opacity: wp.array[wp.float32]
    opacity_threshold: wp.array[wp.float32]  # above 0: the surface is cut away where its opacity is less
    ior: wp.array[wp.float32]
    occlusion: wp.array[wp.float32]
    opacity_mode: wp.array[wp.int32]  # TRANSPARENT, PRESENCE
    textured: wp.array[wp.int32]  # bit k: input k of stage.looks.MATERIAL_INPUTS comes from a texture
    texture: wp.array[wp.int32]  # INPUT_COUNT a material: row of TextureColumns, -1 none
    material_id: wp.array[wp.int32]  # given out


INPUT_COUNT = wp.constant(11)  # of stage.looks.MATERIAL_INPUTS
OPACITY_INPUT = wp.constant(7)  # where some are among them
NORMAL_INPUT = wp.constant(10)

TRANSPARENT = wp.constant(0)  # in the order of stage.looks.OPACITY_MODES
PRESENCE = wp.constant(1)


@wp.struct
class TextureColumns:
    """One row a texture, and one a UDIM tile; textures of one image share its words."""

    words: wp.array[wp.uint32]  # texels in squares of 4 x 4 (`texels.texel_number`): 1 (BYTES), 2 (HALVES) or 4 (FLOATS) words each
    start: wp.array[wp.int32]  # first word
    level_start: wp.array[wp.int32]  # MOST_LEVELS a row: first word of the image, then of its levels, each of half the size
    levels: wp.array[wp.int32]  # how many there are, the image among them
    width: wp.array[wp.int32]
    height: wp.array[wp.int32]
    storage: wp.array[wp.int32]  # BYTES, HALVES, FLOATS; PRIMVAR: no image, `st` is the set of values that is shown
    srgb: wp.array[wp.int32]  # 1: red, green and blue are sRGB-encoded
    wrap_s: wp.array[wp.int32]  # BLACK, CLAMP, REPEAT, MIRROR
    wrap_t: wp.array[wp.int32]
    st: wp.array[wp.int32]  # which set of coordinates it is laid by; NaN there: `st_fallback`
    st_linear: wp.array[wp.vec4f]  # 2 x 2, row by row: applied to the coordinates before `st_offset` is added
    st_offset: wp.array[wp.vec2f]
    st_fallback: wp.array[wp.vec2f]
    channel: wp.array[wp.int32]  # the one shown, -1: all
    scale: wp.array[wp.vec4f]
    bias: wp.array[wp.vec4f]
    tile_start: wp.array[wp.int32]  # into tile_row
    tile_count: wp.array[wp.int32]  # 0: the texture is one image
    fallback: wp.array[wp.vec4f]  # shown where there is no tile
    tile_row: wp.array[wp.int32]  # of the tiles of a texture, u + 10 v: row, -1 none
    linear: wp.array[wp.float32]  # (256,) linear values of sRGB bytes


MOST_LEVELS = 32

BYTES = wp.constant(0)  # log2 of the words of a texel
HALVES = wp.constant(1)
FLOATS = wp.constant(2)
PRIMVAR = wp.constant(3)

BLACK = wp.constant(0)  # in the order of stage.looks.WRAPS
CLAMP = wp.constant(1)
REPEAT = wp.constant(2)
MIRROR = wp.constant(3)


@wp.struct
class PrimvarColumns:
    """One primvar name over all meshes and instances. Meshes hold what varies over a surface, instances what does not."""

    width: wp.int32  # components given out, 1..4
    values: wp.array[wp.float32]  # rows of `width` floats; narrower authored values are padded with 0
    indices: wp.array[wp.int32]
    # One row a mesh.
    mesh_interpolation: wp.array[wp.int32]  # NONE, UNIFORM, VERTEX, FACE_VARYING, BEZIER
    mesh_values: wp.array[wp.int32]  # first row in values
    mesh_indices: wp.array[wp.int32]  # first row in indices, -1: not indexed
    # One row an instance; wins over nothing: used where the mesh has none.
    instance_values: wp.array[wp.int32]  # row in values, -1 none


NONE = wp.constant(0)
UNIFORM = wp.constant(1)
VERTEX = wp.constant(2)
FACE_VARYING = wp.constant(3)
BEZIER = wp.constant(4)  # of curves: rows 4 * segment + 0..3, in Bernstein's basis along the segment


@wp.struct
class TopLevel:
    """The 8-wide BVHs over instances, one a world, all in the same arrays, in the frame of their world.
    Nodes as in MeshColumns; a child < 0 is instance row -1 - child."""

    nodes: wp.array[vec8f]
    children: wp.array[vec8i]


@wp.struct
class WorldColumns:
    """One row a world."""

    root: wp.array[wp.int32]  # node of the world's top-level tree, -1 none
    global_root: wp.array[wp.int32]  # one item: node of the global tree, -1 none
    global_offset: wp.array[wp.vec3d]  # the world's origin in the global frame
    count: wp.int32


@wp.struct
class ClipPlane:
    """A plane of a camera's clippingPlanes in one view, as the tracer wants it: two functions over the pixels (x, y) of the full image,
    f(x, y) = f[0] + f[1] x + f[2] y. The point at t of a pixel's ray is kept where ``offset`` + t ``rate`` >= 0."""

    offset: wp.vec3d
    rate: wp.vec3d


@wp.struct
class LightColumns:
    """Lights: a row a light and world, globals first, then world by world. Places are in the frame of the light's world, as those of
    instances are."""

    start: wp.array[wp.int32]  # (world_count + 2,) first row: of the globals, of world 0, ... and the number of rows
    kind: wp.array[wp.int32]  # DISTANT_LIGHT, ...; -1: off
    linear: wp.array[wp.mat33f]  # world = linear * light + translation; scale of the light's shape in it, in metres
    translation: wp.array[wp.vec3d]
    radiance: wp.array[wp.vec3f]  # that leaves the light, linear Rec.709; of POINT and LINE lights see LightKind
    size: wp.array[wp.vec4f]  # in the light's own space, see LightKind; of DISTANT: cosine and sine of half its angle, the irradiance of
    # what faces it where its radiance is 1 (of one without angle 1), half its angle in radians
    diffuse: wp.array[wp.float32]  # multipliers
    specular: wp.array[wp.float32]
    cone: wp.array[wp.vec4f]  # cosine where the cone ends, cosine where it begins to fade, focus, 1 where there is anything to shape
    focus_tint: wp.array[wp.vec3f]
    shadow: wp.array[wp.int32]  # 1: what it lights can be in shadow
    shadow_color: wp.array[wp.vec3f]
    shadow_reach: wp.array[wp.vec3f]  # [m] how far away occluders count, over what distance before that shadows fade, and the fade's gamma
    texture: wp.array[wp.int32]  # picture of DomeTables of a RECT light, its largest; ever smaller ones follow, to 1 x 1; -1 none.
    # Its lower left corner, seen as images are, is at (+x, +y): what leaves the light is the radiance times it
    link: wp.array[wp.int32]  # bit of InstanceColumns.light_links that what it lights has; 0: it lights everything
    shadow_link: wp.array[wp.int32]  # the same for what casts its shadows; 0: everything does
    dome: wp.array[wp.int32]  # row of DomeTables of a DOME light; -1 others
    instance: wp.array[wp.int32]  # instance row of a MESH light, -1 others
    body: wp.array[wp.int32]  # row of the body that carries it, -1 none


@wp.struct
class DomeTables:
    """What domes look like, for a radiance of 1, and the pictures of other lights. A row a dome unlike the others; directions are
    in the dome's own space: pole +y, middle of the picture +z, +x to its left."""

    image: wp.array[wp.int32]  # picture (latlong); GLOSSY_LEVELS blurred ones follow it, then irradiance by normal, from pole to pole
    cells: wp.array[wp.vec3i]  # cells across, cells down (of latitude), first number in `chances`
    # Of each dome: down + 1 sums over rows of cells, then across + 1 sums within each row, then the chance of each cell over its angle.
    chances: wp.array[wp.float32]
    # A row a picture; row 0 of a picture is its top.
    picture_start: wp.array[wp.int32]
    picture_size: wp.array[wp.vec2i]  # width, height
    texels: wp.array[wp.vec3f]  # linear Rec.709


GLOSSY_LEVELS = wp.constant(4)  # of roughness 1/4, 1/2, 3/4, 1


@wp.struct
class ViewRow:
    """One image of one camera in one world. Pixels are those of the full image, (0, 0) top left, centres at +0.5.

    The ray of the sample at pixel (x, y): origin + origin_dx * x + origin_dy * y, direction + direction_dx * x + direction_dy * y,
    where `origin` and `direction` belong to the centre of pixel (0, 0). Its parameter t is the distance along `forward` [m]
    (forward . direction = 1). Perspective: origin_dx = origin_dy = 0. Orthographic: direction_dx = direction_dy = 0.

    Where rays are given, t is the distance along the ray [m], and of the fields of that map `direction_dx`, `direction_dy` and `direction`
    are the sensor's x, y and z axes in the world, `origin` is `eye` and `origin_dx` the forward axis, unit, in double.
    """

    eye: wp.vec3d  # the camera's position, in the frame of the view's world [m]
    origin: wp.vec3d  # the same in perspective views
    origin_dx: wp.vec3d
    origin_dy: wp.vec3d
    direction: wp.vec3d
    direction_dx: wp.vec3d
    direction_dy: wp.vec3d
    forward: wp.vec3f  # gradient of depth: unit unless the camera is scaled
    right: wp.vec3f  # camera axes in the world (columns of the rotation), unit
    up: wp.vec3f
    back: wp.vec3f
    orthographic: wp.int32
    near: wp.float32  # [m], both ends included; planar depth, or distance along the ray with `radial`
    far: wp.float32
    radial: wp.int32
    plane_count: wp.int32  # clip planes of the view: rows first_plane, ... of the ClipPlane array beside the view rows
    first_plane: wp.int32
    exposure: wp.float32
    scene_unit: wp.float32  # scene units per metre, for cameraDepth
    world: wp.int32
    root: wp.int32  # node of the world's TopLevel tree, -1 none
    global_root: wp.int32  # node of the global tree (its frame is moved by global_offset), -1 none
    global_offset: wp.vec3d  # origin of the view's world in the global frame [m]
    # The data window, in pixels, and the 16 x 8 tiles of the full image that cover it.
    x0: wp.int32
    y0: wp.int32
    width: wp.int32
    height: wp.int32
    tile_x0: wp.int32  # floor(x0 / 16)
    tile_y0: wp.int32  # floor(y0 / 8)
    tiles_x: wp.int32
    tiles_y: wp.int32
    first_tile: wp.int32  # tiles of the views before this one: tile jobs of all views are numbered through
    record: wp.int32  # first pixel of the view in the visibility record
    output: wp.int32  # first pixel of the view in the output arrays (rows of `width` pixels, no padding)
    masked: wp.int32  # 1: not rendered, its outputs keep what they hold
    hides: wp.int32  # instances with any of these flags are not there
    culls: wp.int32  # back faces of instances with any of these flags are looked through
    rays: wp.int32  # 0: the rays above; else rays given one by one: GIVEN, or SCATTERED: not for packets from one point
    first_ray: wp.int32  # of RayColumns, row by row; only of views with given rays


GIVEN = wp.constant(1)
SCATTERED = wp.constant(2)


@wp.struct
class RayColumns:
    """Rays that are given one by one, in the frame of the sensor. Origin 0 and direction 0: no ray."""

    origins: wp.array[wp.vec3f]
    directions: wp.array[wp.vec3f]  # unit


@wp.struct
class Visibility:
    """What each pixel sees. A view's pixels are rows of pitch = 16 * tiles_x; pixel (x, y) of the full image is at
    record + (y - 8 * tile_y0) * pitch + (x - 16 * tile_x0)."""

    slot: wp.array[wp.int32]  # of a triangle, ball or piece (MeshColumns); on shapes 0 where the ray enters, 1 where it leaves; -1 miss
    instance: wp.array[wp.int32]  # instance row, -1 miss
    key: wp.array[wp.float32]  # the larger the nearer: 1/t, or -t in orthographic views; good to about 1e-5, resolve computes t anew


@wp.struct
class Peel:
    """Which pixels of a visibility record to look behind: what they see is replaced by the next surface behind it."""

    pixels: wp.array[wp.int32]  # laid out as the record; 0: keep what is seen
    tiles: wp.array[wp.int32]  # one a tile job (ViewRow.first_tile); 0: no pixel of the tile is marked, and `pixels` is not read
