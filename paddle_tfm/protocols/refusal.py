"""How an export rule says that another engine cannot hold a component."""

from __future__ import annotations


class Refusal(Exception):
    """Raised by the rule of a class where the engine holds it, but not with these options, or not beside what it got
    from its neighbours: the end of a sentence that begins with the component's name.

    Example::

        raise Refusal("caps its logits, which CTranslate2 does not")
    """
