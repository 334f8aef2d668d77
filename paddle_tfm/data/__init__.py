"""Text ↔ ids: tasks and tokenizers (for plugins), vocabulary, corpus, batches."""

from paddle_tfm.data.task import SPLITS, Dataset, Example, RemoteFile, Task
from paddle_tfm.data.tokenizer import Tokenizer

__all__ = ["SPLITS", "Dataset", "Example", "RemoteFile", "Task", "Tokenizer"]
