"""Metadata, the console script and the entry points through which every plugin, ours included, is found."""

from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
PLUGIN_KINDS = [path.parent.name for path in sorted(HERE.glob("plugins/*/__init__.py"))]
ENGINE = find_packages(include=["paddle_tfm", "paddle_tfm.*"])
PLUGINS = ["paddle_tfm_plugins", *(f"paddle_tfm_plugins.{kind}" for kind in PLUGIN_KINDS)]
TESTED_PADDLE = "paddlepaddle==3.3.1"

setup(
    name="paddle-tfm",
    version="0.1.0",
    description="A PaddlePaddle Seq2Seq Transformer engine in which every part a researcher would swap is a plugin",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    python_requires=">=3.10,<3.14",
    py_modules=["paddle_tfm_pytest"],  # outside the package: pytest imports it in every session of an environment
    packages=[*ENGINE, *PLUGINS, "paddle_tfm_recipes"],
    package_dir={"paddle_tfm_plugins": "plugins", "paddle_tfm_recipes": "recipes"},
    package_data={"paddle_tfm_recipes": ["*.yaml", "findings/*.yaml"], "paddle_tfm": ["templates/*/*"]},
    install_requires=[
        "babel>=2.14",  # CLDR: the date formats of the `dates` task
        "click>=8.1",  # the command line
        "matplotlib>=3.8",  # the figure of a comparison
        "numpy>=1.24",  # text to ids, random draws, statistics of a run
        "platformdirs>=4.0",  # where the platform keeps caches: the place of fetched datasets
        "pluggy>=1.5",  # hooks
        "pydantic>=2.7",  # what a recipe may say, and what is wrong with one
        "PyYAML>=6.0",  # recipes
        "rich>=13.7",  # tables, progress bars, colours that switch off
        "sacrebleu>=2.4",  # BLEU, chrF and TER as papers print them
        "safetensors>=0.4.3",  # checkpoints that hold numbers and nothing else
        "scipy>=1.11",  # intervals in a comparison
        "sentencepiece>=0.2.0",  # pieces of words, learned from the training texts
        "visualdl>=2.5.3",  # curves in the browser
    ],
    extras_require={
        # A GPU user installs Paddle's own GPU build instead: it provides the same module.
        "cpu": [TESTED_PADDLE],
        "tokenizers": ["tokenizers>=0.15"],  # ready-made tokenizer.json files: the tokenizer `hugging_face`
        "bench": ["torch>=2.5", "ctranslate2>=4.5"],  # what `paddle-tfm bench` stands beside
        # Whose components stand beside ours with the same weights, in tests/peers.
        "peers": [
            "torch>=2.9",  # attention, norms, LSTM, adaptive softmax, whole Transformers, optimizers (Muon from 2.9 on)
            "transformers>=5.0",  # positions and placements inside whole models: T5, Marian, Llama, GPT-J, Gemma 2, …
            "x-transformers>=2.0",  # gated, talking-heads and cosine attention, ScaleNorm, DyT, xPos
            "lion-pytorch>=0.2",  # Lion, by the author of x-transformers
        ],
        "test": ["pytest>=8.0", "pytest-xdist>=3.5", "ruff>=0.6"],
    },
    entry_points={
        "console_scripts": ["paddle-tfm = paddle_tfm.cli:main"],
        "pytest11": ["paddle_tfm = paddle_tfm_pytest"],
        "paddle_tfm": [f"{kind} = paddle_tfm_plugins.{kind}" for kind in PLUGIN_KINDS],
    },
)
