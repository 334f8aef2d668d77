"""All checks, in the order in which they are shown: what holds for every kind, then what holds for one.

Importing a module registers its checks, so this is the one place where the order is decided.
"""

# isort: off
from paddle_tfm.testing.invariants import training, parameters, independence, decoding, numerics, values  # noqa: F401
from paddle_tfm.testing.invariants import seeds, auxiliary, cost, options  # noqa: F401
from paddle_tfm.testing.kinds.layers import attention, attention_heads, attention_weights  # noqa: F401
from paddle_tfm.testing.kinds.layers import norm, placement, placement_residual  # noqa: F401
from paddle_tfm.testing.kinds.layers import position, position_tables, position_far  # noqa: F401
from paddle_tfm.testing.kinds.layers import feed_forward, head  # noqa: F401
from paddle_tfm.testing.kinds.training import initializer  # noqa: F401
from paddle_tfm.testing.kinds.layers import tidiness  # noqa: F401
from paddle_tfm.testing.kinds.texts import task, dataset, tokenizer, tokenizer_rules, metric, search  # noqa: F401
from paddle_tfm.testing.kinds.training import schedule, optimizer, optimizer_parameters  # noqa: F401
from paddle_tfm.testing.reference import known  # noqa: F401
from paddle_tfm.testing.kinds import kernel, executor, section, listener, whole_model  # noqa: F401
from paddle_tfm.testing.report import CHECKS  # noqa: F401
