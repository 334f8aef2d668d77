"""Empty: the pytest plugin is `paddle_tfm_pytest`. Environments installed before it moved name this module in their metadata,
and their pytest would not start without it; reinstalling (`pip install -e .`) ends that."""
