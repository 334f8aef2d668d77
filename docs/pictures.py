"""The gallery's pictures: small SVG files, computed by the components that they show, readable on light and on dark
pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

STYLE = """<style>
text { font: 12px sans-serif; fill: #333 } .axis { stroke: #999; fill: none }
.dark { fill: #1f6feb } .light { fill: #d0d7de } .line { fill: none; stroke-width: 2 }
.c0 { stroke: #1f6feb } .c1 { stroke: #d1242f } .c2 { stroke: #1a7f37 } .c3 { stroke: #9a6700 } .c4 { stroke: #8250df }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .light { fill: #30363d } }
</style>"""


def all_pictures() -> dict[str, str]:
    """File name → SVG."""
    from paddle_tfm import create_registry, runtime

    runtime.load_paddle()
    registry = create_registry()
    return {"masks.svg": masks(registry), "positions.svg": positions(registry), "schedules.svg": schedules(registry)}


# -------------------------------------------------------------------------------------------------------------- content


def masks(registry) -> str:
    """Which keys a query attends to: padding hidden, the future hidden, and a window."""
    import paddle

    from paddle_tfm.protocols import LayerSite, Mask, PositionalEncoding, Tap, TokenInfo

    length, padded = 10, 2
    info = TokenInfo(
        PositionalEncoding(),
        paddle.arange(length, dtype="int64").unsqueeze(0),
        paddle.to_tensor([[i < length - padded for i in range(length)]]),
    )
    x = paddle.to_tensor(np.random.default_rng(0).normal(size=[1, length, 8]).astype("float32"))

    def attended(spec: object, causal: bool) -> np.ndarray:
        site = LayerSite("decoder" if causal else "encoder", "self", 0, 1, 1)
        values = {"d_model": 8, "num_heads": 2, "dropout": 0.0, "site": site, "max_length": length, "inner_norm": None}
        attention, tap = registry.build("attention", spec, **values), Tap(recording=True)
        mask = Mask(info.positions, info.positions, info.valid, causal)
        attention(x, attention.project(x, info), info, mask, tap)
        weights = tap.recorded[0][1].numpy()[0, 0]  # [T, S]
        return weights[: length - padded] > 1e-9

    panels = [
        ("encoder: padding hidden", attended("multihead", False)),
        ("decoder: the future too", attended("multihead", True)),
        ("local, window 2: encoder", attended({"name": "local", "window": 2}, False)),
        ("local, window 2: decoder", attended({"name": "local", "window": 2}, True)),
    ]
    parts = [_cells(weights, 20 + 190 * i, 30, 15, title) for i, (title, weights) in enumerate(panels)]
    return _svg(780, 175, parts)


def positions(registry) -> str:
    """An encoding that is added to tokens, one that rotates queries and keys, and one that is added to the scores."""
    import paddle

    from paddle_tfm.protocols import LayerSite

    length, d_model, head_dim = 24, 24, 24
    where = paddle.arange(length, dtype="int64").unsqueeze(0)
    values = {"d_model": d_model, "num_heads": 4, "head_dim": head_dim, "max_length": length}
    values["site"] = LayerSite("decoder", "self", 0, 1, 1)
    added = registry.build("position", "sinusoidal", **values).embed(paddle.zeros([1, length, d_model]), where)
    ones = paddle.ones([1, 1, length, head_dim]) / head_dim**0.5
    rotary = registry.build("position", "rotary", **values)
    products = (rotary.query(ones, where) @ rotary.key(ones, where).transpose([0, 1, 3, 2])).numpy()[0, 0, :, 0]
    bias = registry.build("position", "alibi", **values).bias(where, where).numpy()[0, :, -1, ::-1]  # [H, distance]
    panels = [
        _shades(added.numpy()[0].T, 20, 30, 6, "sinusoidal: channel, position"),
        _curves([products], 220, 30, 150, 144, "rotary: q·k by distance"),
        _curves(bias, 420, 30, 150, 144, "alibi: bias by distance"),
    ]
    return _svg(600, 190, panels)


def schedules(registry) -> str:
    """The rate of each schedule as a share of its peak."""
    specs = {
        "constant": {"name": "constant"},
        "noam": {"name": "noam", "warmup": 200},
        "inverse_sqrt": {"name": "inverse_sqrt", "warmup": 200, "peak": 1.0},
        "cosine": {"name": "cosine", "warmup": 200, "peak": 1.0},
        "wsd": {"name": "wsd", "warmup": 200, "peak": 1.0},
    }
    panels = []
    for i, (name, spec) in enumerate(specs.items()):
        schedule = registry.build("schedule", spec, steps=1000, d_model=64)
        rates = np.array([schedule(step) for step in range(1, 1001, 9)])
        panels.append(_curves([rates / rates.max()], 20 + 155 * i, 30, 125, 100, name, bottom=0.0))
    return _svg(790, 145, panels)


# -------------------------------------------------------------------------------------------------------------- drawing


def _svg(width: int, height: int, parts: Iterable[str]) -> str:
    body = "\n".join(parts)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    return f"{head}\n{STYLE}\n{body}\n</svg>\n"


def _title(x: float, y: float, text: str) -> str:
    return f'<text x="{x:g}" y="{y - 10:g}">{text}</text>'


def _cells(values: np.ndarray, x: int, y: int, size: int, title: str) -> str:
    """A square for each value: dark where it is true."""
    parts = [
        _squares(values == shade, x, y, size, size - 1, f'class="{"dark" if shade else "light"}"')
        for shade in (True, False)
    ]
    return "\n".join([_title(x, y, title), *parts])


def _shades(values: np.ndarray, x: int, y: int, size: int, title: str) -> str:
    """A square for each value, the darker the larger it is, in ten steps."""
    tenths = np.rint(10 * (values - values.min()) / (values.max() - values.min())).astype(int)
    parts = [
        _squares(tenths == shade, x, y, size, size, f'class="dark" opacity="{shade / 10:g}"') for shade in range(1, 11)
    ]
    return "\n".join([_title(x, y, title), *parts])


def _squares(where: np.ndarray, x: int, y: int, size: int, width: int, look: str) -> str:
    """One path of the squares of an array's true cells."""
    corners = [f"M{x + j * size} {y + i * size}h{width}v{width}h-{width}z" for i, j in np.argwhere(where)]
    return f'<path {look} d="{"".join(corners)}"/>'


def _curves(
    lines: Sequence[np.ndarray],
    x: float,
    y: float,
    width: float,
    height: float,
    title: str,
    bottom: float | None = None,
) -> str:
    """Curves in one frame, from the lowest value (or `bottom`) to the highest."""
    low = min(map(np.min, lines)) if bottom is None else bottom
    high = max(map(np.max, lines))
    rows = [_title(x, y, title), f'<path class="axis" d="M{x:g} {y:g}v{height:g}h{width:g}"/>']
    for i, line in enumerate(lines):
        across = x + width * np.arange(len(line)) / (len(line) - 1)
        up = y + height * (1 - (line - low) / (high - low or 1))
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, up))
        rows.append(f'<polyline class="line c{i}" points="{points}"/>')
    return "\n".join(rows)
