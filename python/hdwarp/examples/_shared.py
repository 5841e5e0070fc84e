"""examples._shared: what the examples have in common: their command line, the sample stages, pictures."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import warp as wp

ROBOT_CELL = Path(__file__).resolve().parents[3] / "sample_stages" / "robot_cell.usda"
LINKS = ("base", "shoulder", "upper_arm", "forearm", "hand")
"""The robot of that stage, from the floor to the tip."""


def arguments_of(module: str, doc: str) -> argparse.ArgumentParser:
    """A parser with ``--out`` and ``--device``, which all of these examples have."""
    parser = argparse.ArgumentParser(prog=f"python -m hdwarp.examples.{module}", description=doc.partition("\n")[0].partition(": ")[2])
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for the pictures; without it none are written")
    parser.add_argument("--device", help="Warp's name of it, such as cpu or cuda:0; by default Warp's own choice")
    return parser


def robot_cell(parser: argparse.ArgumentParser, given: Path | None = None) -> str:
    """Path of the stage. Where hdWarp is installed from a wheel the sample stages are not beside it, but may be in the folder one is in;
    without ends with a message that says so."""
    beside = [path for path in (ROBOT_CELL, Path("sample_stages", ROBOT_CELL.name)) if path.exists()]
    path = (beside or [ROBOT_CELL])[0] if given is None else given
    if not path.exists():
        parser.error(f"{path} is not there; get sample_stages/robot_cell.usda from hdWarp's sources and give it as --stage PATH")
    return str(path)


def save_picture(folder: Path, name: str, pixels: np.ndarray | wp.array) -> Path:
    """(H, W, 3 or 4) uint8 as a PNG in ``folder``, over black."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    pixels = pixels.numpy() if isinstance(pixels, wp.array) else pixels
    path = folder / name
    Image.fromarray(np.ascontiguousarray(pixels[..., :3])).save(path)
    return path


def side_by_side(pictures: list[np.ndarray], gap: int = 4) -> np.ndarray:
    """(H, W, 3) uint8 pictures of one height in a row, white between them."""
    white = np.full((pictures[0].shape[0], gap, 3), 255, np.uint8)
    row = [piece for picture in pictures for piece in (picture[..., :3], white)]
    return np.concatenate(row[:-1], axis=1)
