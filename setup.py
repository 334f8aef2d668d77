"""Metadata, the console script and the entry points through which every plugin, ours included, is found."""

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
PLUGIN_KINDS = [path.parent.name for path in sorted(HERE.glob("plugins/*/__init__.py"))]
ENGINE = find_packages(include=["paddle_tfm", "paddle_tfm.*"])
PLUGINS = ["paddle_tfm_plugins", *(f"paddle_tfm_plugins.{kind}" for kind in PLUGIN_KINDS)]
TESTED_PADDLE = "paddlepaddle==3.3.1"


def version() -> str:
    """The one that `paddle_tfm.__version__` says, read without importing it."""
    source = (HERE / "paddle_tfm" / "__init__.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "(.+)"$', source, re.MULTILINE).group(1)


def long_description() -> str:
    """README for a package index: a link to a file of the repository leads nowhere there, so only its text stays."""
    readme = (HERE / "README.md").read_text(encoding="utf-8")
    readme = re.sub(r"!\[([^]]*)\]\((?!https?://)[^)]*\)", r"\1", readme)  # pictures first: a link may hold one
    return re.sub(r"\[([^]]+)\]\((?!https?://|#)[^)]*\)", r"\1", readme)


setup(
    name="paddle-tfm",
    version=version(),
    description="A PaddlePaddle Seq2Seq Transformer engine in which every part a researcher would swap is a plugin",
    long_description=long_description(),
    long_description_content_type="text/markdown",
    license_expression="Apache-2.0",
    license_files=["LICENSE"],
    keywords="transformer, seq2seq, paddlepaddle, machine translation, ablation, conformance tests, plugins",
    classifiers=[
        "Development Status :: 4 - Beta",
        "Environment :: Console",
        "Intended Audience :: Education",
        "Intended Audience :: Science/Research",
        "Natural Language :: Chinese (Simplified)",
        "Natural Language :: English",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Text Processing :: Linguistic",
        "Typing :: Typed",
    ],
    python_requires=">=3.10,<3.14",
    py_modules=["paddle_tfm_pytest"],  # outside the package: pytest imports it in every session of an environment
    packages=[*ENGINE, *PLUGINS, "paddle_tfm_recipes"],
    package_dir={"paddle_tfm_plugins": "plugins", "paddle_tfm_recipes": "recipes"},
    package_data={
        "paddle_tfm": ["py.typed", "templates/*/*", "comparison/report/papers.tsv", "locale/*/*/*.mo"],
        "paddle_tfm_plugins": ["py.typed"],
        "paddle_tfm_recipes": ["*.yaml", "findings/*.yaml"],
    },
    # `.ci/lowest` tests the lowest versions.
    install_requires=[
        "babel>=2.14",  # CLDR: the date formats of the `dates` task
        "click>=8.1",  # the command line
        "lxml>=5.0",  # TMX and XLIFF, without entities and as a stream; sacrebleu brings it
        "matplotlib>=3.8.4",  # the figure of a comparison
        "numpy>=2.2.6",  # text to ids, random draws, statistics of a run; before, `from_dlpack` is read-only
        "pillow>=12.3",  # titles and scales of the images for VisualDL
        "platformdirs>=4.0",  # where the platform keeps caches: the place of fetched datasets
        "pluggy>=1.5",  # hooks
        "pydantic>=2.7",  # what a recipe may say, and what is wrong with one
        "PyYAML>=6.0",  # recipes
        "rich>=13.7",  # tables, progress bars, colours that switch off
        "sacrebleu>=2.4",  # BLEU, chrF and TER as papers print them
        "safetensors>=0.6.1",  # checkpoints that hold numbers and nothing else
        "scipy>=1.13",  # intervals in a comparison
        "sentencepiece>=0.2.3",  # pieces of words; before, a damaged file could crash the process
        "visualdl>=2.5.3",  # curves in the browser
    ],
    extras_require={
        # A GPU user installs Paddle's own GPU build instead: it provides the same module.
        "cpu": [TESTED_PADDLE],
        "chinese": ["jieba>=0.42"],  # words of Chinese: the tokenizer `chinese_words`
        "tokenizers": ["tokenizers>=0.15"],  # ready-made tokenizer.json files: the tokenizer `hugging_face`
        # Decoding on a CPU at the speed of an engine in C++: `export`, --engine ctranslate2. Before 4.8.1 a damaged
        # file could write beyond its memory.
        "ctranslate2": ["ctranslate2>=4.8.1"],
        "zstd": ["backports.zstd>=1.0"],  # texts in .zst: the module of Python 3.14's library
        "moses": ["sacremoses>=0.1.1"],  # BLEU as papers on Multi30k print it: the metric `moses_bleu`
        # Runs on a cluster: the executor `ray`. All machines of a cluster have the same version of it.
        "ray": ["ray>=2.50"],
        "bench": ["torch>=2.5", "ctranslate2>=4.8.1"],  # what `python -m benchmarks` stands beside
        # Whose components stand beside ours with the same weights, in tests/peers.
        "peers": [
            "torch>=2.9",  # attention, norms, LSTM, adaptive softmax, whole Transformers, optimizers (Muon from 2.9 on)
            "transformers>=5.0",  # positions and placements inside whole models: T5, Marian, Llama, GPT-J, Gemma 2, …
            "x-transformers>=2.0",  # gated, talking-heads and cosine attention, ScaleNorm, DyT, xPos
            "lion-pytorch>=0.2",  # Lion, by the author of x-transformers
            "schedulefree>=1.4",  # schedule-free AdamW, by its authors
            "statsmodels>=0.14",  # Holm's method, intervals, variance components, regression
        ],
        "test": [
            "backports.zstd>=1.0",  # texts in .zst
            "ctranslate2>=4.8.1",  # what exports are checked against
            "hypothesis>=6.100",  # inputs that nobody would think of
            "jieba>=0.42",  # the tokenizer `chinese_words`
            "pytest>=8.0",
            "pytest-xdist>=3.5",  # as many processes as there are cores
            "sacremoses>=0.1.1",  # the metric `moses_bleu`
            "subword-nmt>=0.3.8",  # cuts by its codes as the tokenizer `subword_nmt` must
        ],
        # The pages as a site, `mkdocs serve`, and the notebooks.
        "docs": [
            "ipykernel>=6.29",  # what a notebook runs in
            "jieba>=0.42",  # words of Chinese, for the site's search
            "mkdocs>=1.6,<2",
            "mkdocs-material>=9.5,<10",  # its appearance
            "mkdocs-static-i18n>=1.3",  # English and Chinese by the names of files
            "nbclient>=0.10",  # runs the notebooks in tests
        ],
        # What `.ci/run` needs beside the tests.
        "dev": [
            "build>=1.2",  # a wheel and an sdist, as a package index gets them
            "coverage>=7.4",  # which lines the tests run
            "mypy>=1.11",  # types of the engine
            "ruff>=0.6",  # lint and format
            "types-PyYAML",  # their types, for mypy
        ],
    },
    entry_points={
        "console_scripts": ["paddle-tfm = paddle_tfm.cli:main"],
        "pytest11": ["paddle_tfm = paddle_tfm_pytest"],
        "paddle_tfm": [f"{kind} = paddle_tfm_plugins.{kind}" for kind in PLUGIN_KINDS],
    },
)
