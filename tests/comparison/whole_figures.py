"""What is wrong with how a figure is laid out."""

from __future__ import annotations

ROUNDING = 0.01  # inches


def cut_off(figure) -> bool:
    """Whether anything goes beyond the figure's edges: title, labels and legend too."""
    figure.draw_without_rendering()  # lays it out
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    return min(box.x0, box.y0, width - box.x1, height - box.y1) < -ROUNDING


def repeated(figure) -> list[list[str]]:
    """The tick labels of each axis on which two are alike."""
    axes = [part for each in figure.axes for part in (each, *each.child_axes)]
    labels = [
        [label.get_text() for label in axis.get_ticklabels()] for each in axes for axis in (each.xaxis, each.yaxis)
    ]
    return [texts for texts in labels if len(set(filter(None, texts))) < len([*filter(None, texts)])]
