"""Which ordinary layers, written without paddle_tfm, the conformance kit can check. Imports nothing: the command line
reads it to show its help."""

AS_KINDS = ("attention", "norm", "position", "feed_forward", "encoder-decoder")
