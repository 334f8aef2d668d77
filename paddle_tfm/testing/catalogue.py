"""All checks, in the order in which they are shown: what holds for every kind, then what holds for one.

Importing a module registers its checks, so this is the one place where the order is decided.
"""

# isort: off
from paddle_tfm.testing.invariants import training, parameters, independence, decoding, numerics, values  # noqa: F401
from paddle_tfm.testing.invariants import seeds, auxiliary, cost, options  # noqa: F401
from paddle_tfm.testing.kinds import attention, attention_heads, attention_dropout, attention_masks  # noqa: F401
from paddle_tfm.testing.kinds import norm, placement, placement_residual, placement_chance  # noqa: F401
from paddle_tfm.testing.kinds import position, position_length, position_table, position_far  # noqa: F401
from paddle_tfm.testing.kinds import feed_forward, norms_inside, head, head_words, initializer  # noqa: F401
from paddle_tfm.testing.kinds import tidiness  # noqa: F401
from paddle_tfm.testing.kinds import task, dataset, tokenizer, tokenizer_rules, metric  # noqa: F401
from paddle_tfm.testing.kinds import search, schedule, optimizer, optimizer_parameters, executor, section  # noqa: F401
from paddle_tfm.testing.kinds import listener, whole_model  # noqa: F401
from paddle_tfm.testing.report import CHECKS  # noqa: F401
