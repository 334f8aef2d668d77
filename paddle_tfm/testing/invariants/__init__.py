"""What holds for every part of a model, whichever kind it is: one body a check, over the interface `ModelUnderTest`.

Checks that decode step by step need an engine's model, a `Scene`; the others hold for anybody's whole model too.
"""

LAYERS = ("attention", "norm", "placement", "position", "feed_forward", "head")
COMPONENTS = (*LAYERS, "initializer")
WHOLE_MODEL = "encoder-decoder"
