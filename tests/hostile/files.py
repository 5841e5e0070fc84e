"""Files gone wrong: truncated, with bits flipped, and packages that are no packages. Bytes in, bytes out."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib

from hypothesis import strategies as st


@st.composite
def damaged(draw: st.DrawFn, sound: bytes) -> bytes:
    """A file cut short, with some bits flipped, some bytes replaced by telling ones, or a part of it moved."""
    data = bytearray(sound)
    how = draw(st.sampled_from(("cut", "bits", "bits", "bytes", "bytes", "numbers", "insert", "repeat")))
    at = st.integers(0, len(data) - 1)
    if how == "cut":
        return bytes(data[: draw(at)])
    for _ in range(draw(st.integers(1, 6))):
        place = draw(at)
        if how == "bits":
            data[place] ^= 1 << draw(st.integers(0, 7))
        elif how == "bytes":
            data[place] = draw(st.sampled_from((0, 1, 0x7F, 0x80, 0xFF, 0x22, 0x28, 0x7B, 0x7D)))
        elif how == "numbers":  # counts and offsets of 8 bytes
            number = draw(st.sampled_from((0, 1, 2**31, 2**32, 2**40, 2**63, 2**64 - 1, len(sound), len(sound) - 1)))
            start = draw(st.integers(0, len(data) // 8 - 1)) * 8
            data[start : start + 8] = struct.pack("<Q", number)
        elif how == "insert":
            data[place:place] = draw(st.binary(min_size=1, max_size=16))
        else:
            end = min(len(data), place + draw(st.integers(1, 256)))
            data[place:place] = data[place:end]
    return bytes(data)


def package(entries: dict[str, bytes], *, compression: int = zipfile.ZIP_STORED, aligned: bool = True) -> bytes:
    """A usdz: a zip of stored entries whose data begin at multiples of 64 bytes, or what is not quite that."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as file:
        for name, data in entries.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = compression
            if aligned:
                gap = -(out.tell() + 30 + len(name.encode()) + 4) % 64
                info.extra = struct.pack("<HH", 0x1986, gap) + bytes(gap)
            file.writestr(info, data)
    return out.getvalue()


def bomb(size: int = 1 << 31) -> bytes:
    """A usdz whose one entry is compressed, and ``size`` bytes once it is not: written piece by piece, for it is never that large here."""
    name, packer, crc, piece = b"bomb.usda", zlib.compressobj(9, zlib.DEFLATED, -15), 0, b" " * (1 << 20)
    data = []
    for _ in range(size // len(piece)):
        data.append(packer.compress(piece))
        crc = zlib.crc32(piece, crc)
    packed = b"".join(data) + packer.flush()
    sizes = struct.pack("<LLL", crc, len(packed), size)
    local = b"PK\x03\x04" + struct.pack("<HHHHH", 20, 0, 8, 0, 33) + sizes + struct.pack("<HH", len(name), 0) + name
    central = (
        b"PK\x01\x02" + struct.pack("<HHHHHH", 20, 20, 0, 8, 0, 33) + sizes + struct.pack("<HHHHHLL", len(name), 0, 0, 0, 0, 0, 0) + name
    )
    end = b"PK\x05\x06" + struct.pack("<HHHHLLH", 0, 0, 1, 1, len(central), len(local) + len(packed), 0)
    return local + packed + central + end


def lying(claim: int, data: bytes) -> bytes:
    """A usdz whose entry says that it has ``claim`` bytes."""
    sound = bytearray(package({"a.usda": data}))
    for mark, place in ((b"PK\x03\x04", 18), (b"PK\x01\x02", 20)):
        start = sound.index(mark) + place
        sound[start : start + 8] = struct.pack("<LL", claim, claim)
    return bytes(sound)
