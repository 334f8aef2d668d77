"""The benchmark compares like with like: the same losses and gradients on both sides. No test looks at a clock."""

import re

import numpy as np
import pytest

from paddle_tfm import runtime
from paddle_tfm.bench import decode, process, settings, step
from paddle_tfm.bench import sides as bench_sides
from paddle_tfm.bench.decode import measure_decoding
from paddle_tfm.bench.step import measure
from paddle_tfm.errors import RecipeError, UserError

SMALL = [
    *("model.d_model=16", "model.num_heads=2", "model.d_ff=24", "model.encoder_layers=2", "model.decoder_layers=1"),
    *("model.max_length=24", "train.max_tokens=240", "task.train=20", "task.min_length=4"),
]


def sides(folder, overrides=(), placement="pre"):
    """Our side and Paddle's, in this process."""
    runtime.load_paddle()
    from paddle_tfm.bench import ours, paddle_nn
    from paddle_tfm.bench.workload import Workload

    settings.prepare(folder, settings.settings("base", [*SMALL, *overrides], placement=placement), 2)
    mine = ours.Side(folder)
    mine.workload().write(folder)
    return mine, paddle_nn.Side(Workload.read(folder))


@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("scale", ["true", "false"])
def test_with_copied_weights_first_losses_are_equal(tmp_path, placement, scale):
    ours, paddles = sides(tmp_path, [f"model.scale_embedding={scale}"], placement)
    assert paddles.first_loss() == pytest.approx(ours.first_loss(), abs=1e-5)
    batch = ours.batches[0]
    assert not batch.source_valid.all() and not batch.target_valid.all(), "no padding: the masks are not tried"


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_with_copied_weights_every_gradient_is_equal(tmp_path, placement):
    from paddle_tfm.bench.paddle_nn import counterparts

    ours, paddles = sides(tmp_path, placement=placement)
    model, batch = ours.trainer.run.model, ours.batches[0].tensors()
    model.eval()
    paddles.model.eval()
    model.loss(batch).backward()
    tensors = [batch.source, batch.source_valid, batch.target_in, batch.target_valid, batch.target_out]
    paddles.model.loss(*tensors).backward()
    mine, theirs = dict(model.named_parameters()), dict(paddles.model.named_parameters())
    for their_name, name in counterparts(paddles.model):
        expected = mine[name].grad.numpy()
        np.testing.assert_allclose(theirs[their_name].grad.numpy(), expected, atol=1e-5, err_msg=name)


def test_without_dropout_four_updates_leave_the_same_weights(tmp_path):
    """Clipping, optimizer, learning rate and the order of batches are the same."""
    from paddle_tfm.bench.paddle_nn import counterparts

    ours, paddles = sides(tmp_path, ["model.dropout=0.0", "train.clip_norm=0.5"])
    for number in range(4):
        ours.step(number)
        paddles.step(number)
    mine, theirs = dict(ours.trainer.run.model.named_parameters()), dict(paddles.model.named_parameters())
    changed = 0.0
    with np.load(tmp_path / "weights.npz") as before:
        for their_name, name in counterparts(paddles.model):
            if name.endswith("key.bias"):
                continue  # its gradient is 0 but for rounding, of which Adam makes steps of any sign
            np.testing.assert_allclose(theirs[their_name].numpy(), mine[name].numpy(), atol=2e-7, err_msg=name)
            changed = max(changed, np.abs(before[name] - mine[name].numpy()).max())
    assert changed > 2e-4


def test_dropout_is_applied_to_the_same_places(tmp_path):
    import paddle

    from paddle_tfm.layers import Dropout

    ours, paddles = sides(tmp_path, ["model.dropout=0.2", "model.embedding_dropout=0.3"])
    mine = [layer.rate for layer in ours.trainer.run.model.sublayers() if isinstance(layer, Dropout)]
    peer = paddles.model.sublayers()
    theirs = [layer.p for layer in peer if isinstance(layer, paddle.nn.Dropout)]
    theirs += [layer.dropout for layer in peer if isinstance(layer, paddle.nn.MultiHeadAttention)]
    # one object serves both embeddings there, one a stack here
    assert sorted(mine) == sorted([*theirs, 0.3])


# ----------------------------------------------------------------------------------------------- PyTorch and JoeyNMT


def others(folder, side, overrides=(), placement="pre"):
    """Our side and that of another library, in this process."""
    pytest.importorskip("torch", reason="the extra [bench]")
    if side == "joeynmt":
        pytest.importorskip("joeynmt.model")
        from paddle_tfm.bench.joeynmt import Side
    else:
        from paddle_tfm.bench.pytorch import Side
    from paddle_tfm.bench.workload import Workload

    ours, _ = sides(folder, overrides, placement)
    return ours, Side(Workload.read(folder))


@pytest.fixture(autouse=True)
def threads(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("side", ["torch", "joeynmt"])
def test_another_library_starts_from_the_same_loss(tmp_path, side, placement):
    ours, theirs = others(tmp_path, side, placement=placement)
    assert theirs.first_loss() == pytest.approx(ours.first_loss(), abs=1e-4 if side == "joeynmt" else 1e-5)


@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("side", ["torch", "joeynmt"])
def test_another_library_has_the_same_gradients(tmp_path, side, placement):
    ours, theirs = others(tmp_path, side, placement=placement)
    model, batch = ours.trainer.run.model, ours.batches[0].tensors()
    model.eval()
    model.loss(batch).backward()
    mine = {name: parameter.grad.numpy() for name, parameter in model.named_parameters()}
    theirs.model.eval()
    theirs.backward(0)
    for name, parameter in theirs.model.named_parameters():
        expected = np.concatenate([mine[one] for one in dict(theirs.counterparts())[name]], -1)
        gradient = parameter.grad.numpy() if "embed" in name else parameter.grad.numpy().T
        np.testing.assert_allclose(gradient, expected, atol=1e-4 if side == "joeynmt" else 1e-5, err_msg=name)


def test_without_dropout_four_updates_of_pytorch_leave_the_same_loss(tmp_path):
    ours, theirs = others(tmp_path, "torch", ["model.dropout=0.0", "train.clip_norm=0.5"])
    before = ours.first_loss()
    for number in range(4):
        ours.step(number)
        theirs.step(number)
    assert before - ours.first_loss() > 1e-3
    assert theirs.first_loss() == pytest.approx(ours.first_loss(), abs=1e-5)


@pytest.mark.parametrize("side", ["torch", "joeynmt"])
def test_dropout_of_another_library_is_applied_to_the_same_places(tmp_path, side):
    from paddle_tfm.layers import Dropout

    ours, theirs = others(tmp_path, side, ["model.dropout=0.2", "model.embedding_dropout=0.3"])
    assert theirs.model.training
    mine = [layer.rate for layer in ours.trainer.run.model.sublayers() if isinstance(layer, Dropout)]
    rates = [layer.p for layer in theirs.model.modules() if type(layer).__name__ == "Dropout"]
    rates += [layer.dropout for layer in theirs.model.modules() if type(layer).__name__ == "MultiheadAttention"]
    # One object serves both embeddings in the one, both attentions of a decoder's layer in the other.
    assert sorted([*rates, 0.3 if side == "torch" else 0.2]) == sorted(mine)


# ------------------------------------------------------------------------------------------------------------ decoding


TINY = ["model.d_model=16", "model.num_heads=2", "model.d_ff=24", "model.encoder_layers=2", "model.decoder_layers=1"]


KINDS = [("pre", "{name: linear, bias: false}", False), ("post", "tied", True)]


@pytest.fixture(scope="module", params=KINDS)
def trained(request, tmp_path_factory):
    """A run that has learned as much as that padding is no word (JoeyNMT does not forbid it)."""
    import paddle_tfm

    placement, head, shared = request.param
    model = [f"model.placement={placement}", f"model.head={head}", f"model.share_embeddings={str(shared).lower()}"]
    train = ["train.steps=150", "evaluate.every=150", "train.max_tokens=256", "task={name: copy, test: 30, valid: 10}"]
    train += ["train.schedule={name: constant, learning_rate: 0.01}"]
    folder = tmp_path_factory.mktemp("run") / "runs"
    shared = [f"vocabulary.shared={str(shared).lower()}"]
    return paddle_tfm.run("base", [*TINY, *model, *train, *shared, "seeds=[1]"], out=folder)[0]


def decoders(run, folder, **more):
    runtime.load_paddle()
    from paddle_tfm.bench import ours

    request = {"run": str(run), "beam": 4, "alpha": 1.0, "sentences": 20, "singles": 5, "plugins": [], "export": False}
    request |= more
    mine = ours.Decoder(request)
    mine.workload().write(folder)
    return mine, request


def test_the_same_is_written_with_and_without_the_cache(trained, tmp_path):
    from paddle_tfm.bench import ours

    mine, request = decoders(trained, tmp_path)
    outputs = mine.decode("single")
    assert len(outputs) == 5 and any(outputs)
    assert ours.Decoder(request, "ours-uncached").decode("single") == outputs


def test_pytorch_in_inference_mode_writes_the_same_with_our_weights(trained, tmp_path):
    pytest.importorskip("torch", reason="the extra [bench]")
    from paddle_tfm.bench import tuned
    from paddle_tfm.bench.workload import Workload

    mine, request = decoders(trained, tmp_path)
    assert tuned.Decoder(Workload.read(tmp_path), request).decode("single") == mine.decode("single")


def test_the_engine_writes_the_same_one_sentence_at_a_time(trained, tmp_path):
    pytest.importorskip("ctranslate2", reason="the extra [bench]")
    from paddle_tfm.bench import ours

    mine, request = decoders(trained, tmp_path)
    theirs = ours.Decoder(request, "ours-ctranslate2")
    assert theirs._decode is not mine._decode
    assert theirs.decode("single") == mine.decode("single")
    assert len(theirs.decode("beam")) == len(mine.decode("beam"))


def test_joeynmt_writes_the_same_with_our_weights(trained, tmp_path):
    pytest.importorskip("torch", reason="the extra [bench]")
    pytest.importorskip("joeynmt.model")
    from paddle_tfm.bench import joeynmt
    from paddle_tfm.bench.workload import Workload

    mine, request = decoders(trained, tmp_path)
    theirs = joeynmt.Decoder(Workload.read(tmp_path), request)
    assert theirs.decode("single") == mine.decode("single")
    same = [a == b for a, b in zip(theirs.decode("beam"), mine.decode("beam"))]
    assert len(same) == 20 and sum(same) >= 15, "the searches end by rules of their own, and mostly agree"


def test_ctranslate2_writes_the_same_with_our_weights(trained, tmp_path):
    """Without a length penalty, of which it has another. Its model is the run's own export."""
    pytest.importorskip("ctranslate2", reason="the extra [bench]")
    from paddle_tfm.bench import ctranslate2
    from paddle_tfm.bench.workload import Workload

    mine, request = decoders(trained, tmp_path, alpha=0.0, export=True)
    assert Workload.read(tmp_path).sizes["export"] == str(trained / "export" / "ctranslate2")
    theirs = ctranslate2.Decoder(Workload.read(tmp_path), request)
    assert theirs.decode("single") == mine.decode("single")
    same = [a == b for a, b in zip(theirs.decode("beam"), mine.decode("beam"))]
    assert len(same) == 20 and sum(same) >= 15, "the searches end by rules of their own, and mostly agree"


@pytest.mark.parametrize("trained", KINDS[1:], indirect=True)  # three processes with Paddle, whatever the model
def test_measure_decoding_reports_every_job(trained):
    results = measure_decoding(trained, rounds=1, sentences=8, singles=3, sides=["ours-uncached"])
    assert [(job, result["sentences"]) for job, result in results["jobs"].items()] == [("beam", 8), ("single", 3)]
    assert list(results["jobs"]["beam"]["sides"]) == ["ours"]
    single = results["jobs"]["single"]
    assert list(single["sides"]) == ["ours", "ours-uncached"]
    assert {side["variables"]["FLAGS_use_stride_kernel"] for side in single["sides"].values()} == {"0"}
    assert single["same"] == {"ours-uncached": 1.0}
    assert all(0 < side["low"] <= side["median"] <= side["high"] for side in single["sides"].values())
    assert single["ratio"]["ours-uncached"]["median"] > 0


@pytest.fixture
def untrained(tmp_path):
    """A run of one step with a line more than `TINY`."""
    import paddle_tfm

    lines = [
        "search={name: greedy, max_length: 3}",
        "evaluate.search={name: greedy, max_length: 3}",
        "train.steps=1",
        "evaluate.every=1",
        "train.max_tokens=256",
        "task={name: copy, test: 5}",
        "seeds=[1]",
    ]
    return lambda line: paddle_tfm.run("base", [*TINY, *lines, line], out=tmp_path / "runs")[0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("model.norm=rms", "it has model.norm layer, and the run rms"),
        ("model.head=linear", "its model.head has no bias ({name: linear, bias: false}), and the run's has one"),
    ],
)
def test_what_the_peers_lack_of_a_model_is_said(untrained, tmp_path, line, message):
    mine, _ = decoders(untrained(line), tmp_path)
    assert mine.facts()["lacking"] == {"torch-tuned": message, "joeynmt": message}


def test_a_side_without_such_a_model_is_left_out_and_refused_where_it_is_asked_for(untrained):
    pytest.importorskip("ctranslate2", reason="the extra [bench]")
    run, reports = untrained("model.norm={encoder: batch, decoder: layer}"), []
    results = measure_decoding(run, rounds=1, sentences=2, singles=1, report=reports.append)
    assert list(results["jobs"]["single"]["sides"]) == ["ours", "ours-uncached"]
    assert any(re.match(r"ctranslate2: left out: .*batch", text) for text in reports), reports
    with pytest.raises(UserError, match=r"the side 'ctranslate2' has no such model: .*batch"):
        measure_decoding(run, rounds=1, sentences=2, singles=1, sides=["ctranslate2"])


def test_copy_weights_refuses_another_model(tmp_path):
    from paddle_tfm.bench.paddle_nn import copy_weights

    ours, paddles = sides(tmp_path)
    weights = {name: tensor.numpy() for name, tensor in ours.trainer.run.model.state_dict().items()}
    with pytest.raises(ValueError, match=r"without counterpart are extra\.weight"):
        copy_weights({**weights, "extra.weight": np.zeros(1)}, paddles.model)
    with pytest.raises(ValueError, match=r"`head.output.bias` must have the shape \[\d+\], but has \[2\]"):
        copy_weights({**weights, "head.output.bias": np.zeros(2)}, paddles.model)


PADDLES = ["paddle", "paddle-tuned"]


def test_measure_reports_every_side(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    reports = []
    result = measure("base", SMALL, rounds=1, steps=2, sides=PADDLES, report=reports.append)
    assert list(result["sides"]) == ["ours", *PADDLES]
    for side in result["sides"].values():
        assert 0 < side["low_ms"] <= side["median_ms"] <= side["high_ms"]
        assert side["tokens_per_second"] > 0
        assert 50 < side["loaded_mib"] <= side["peak_mib"] < 20_000
    ours = int(bench_sides.environment("ours").get("OMP_NUM_THREADS", runtime.physical_cores()))
    assert [side["threads"] for side in result["sides"].values()] == [ours, 1, ours]
    variables = [side["variables"] for side in result["sides"].values()]
    assert variables[1] == {}, "as it comes"
    assert variables[2]["FLAGS_use_stride_kernel"] == "0"
    assert {side["precision"] for side in result["sides"].values()} == {"float32"}
    assert list(result["ratio"]) == ["paddle", "paddle-tuned"]
    assert all(spread["low"] <= spread["median"] <= spread["high"] for spread in result["ratio"].values())
    assert result["first_loss"]["difference"] < 1e-4
    assert result["sizes"]["d_model"] == 16 and result["sizes"]["parameters"] > 5000
    assert (result["rounds"], result["steps"]) == (1, 2)
    assert result["machine"]["processor"] and result["versions"]["paddle"].startswith("paddlepaddle")
    assert reports == [*(f"{side}: loading" for side in ("ours", *PADDLES)), "warming up", "round 1 of 1"]


@pytest.mark.parametrize("length, rows", [(7, 4), (40, 1)])
def test_sentences_of_a_given_length_are_the_texts_one_after_another(tmp_path, length, rows):
    overrides = [
        *SMALL,
        f"model.max_length={length}",
        "train.max_tokens=30",
        "task={name: copy, train: 40, min_length: 2, max_length: 6}",
    ]
    runtime.load_paddle()
    from paddle_tfm.bench import ours

    settings.prepare(tmp_path, settings.settings("base", overrides), 3, length=length)
    side = ours.Side(tmp_path)
    texts = side.trainer.run.encoded["train"]
    for side_of_text, name in (("source", "source"), ("target", "target_out")):
        chained = [i for example in texts for i in getattr(example, side_of_text)] * 5
        rows_of_batches = [row for batch in side.batches for row in getattr(batch, name).tolist()]
        assert [len(row) for row in rows_of_batches] == [length] * 3 * rows
        assert [i for row in rows_of_batches for i in row] == chained[: 3 * rows * length]
    side.step(0)


def test_a_peer_says_no_variable_that_this_process_set_after_its_library(monkeypatch):
    from paddle_tfm.bench import worker

    monkeypatch.setenv("FLAGS_use_stride_kernel", "0")
    monkeypatch.setenv("DNNL_MAX_CPU_ISA", "AVX2")
    monkeypatch.delenv("MKL_DEBUG_CPU_TYPE", raising=False)  # set on processors that need it
    monkeypatch.setattr(runtime, "SETTINGS", [runtime.Setting("FLAGS_use_stride_kernel", "0", "")])
    assert worker.described("torch", None)["variables"] == {"DNNL_MAX_CPU_ISA": "AVX2"}
    assert set(worker.described("ours", None)["variables"]) == {"DNNL_MAX_CPU_ISA", "FLAGS_use_stride_kernel"}


def test_measure_growth_measures_each_size(monkeypatch):
    calls = []
    monkeypatch.setattr(step, "measure", lambda **arguments: calls.append(arguments) or {"sides": {}})
    results = step.measure_growth("vocabulary", [10, 20], ["model.dropout=0.0"], size="tiny")
    assert results == [{"vocabulary": 10, "sides": {}}, {"vocabulary": 20, "sides": {}}]
    assert [call["overrides"] for call in calls] == [
        [f"vocabulary.max_size={n}", "model.dropout=0.0"] for n in (10, 20)
    ]
    assert all(call["size"] == "tiny" for call in calls)
    step.measure_growth("length")
    assert [call["length"] for call in calls[2:]] == [64, 128, 256, 512, 1024, 2048]
    with pytest.raises(UserError, match="unknown growth 'lenght'; did you mean 'length'"):
        step.measure_growth("lenght")


COMPUTES = {"threads": 1, "processes": 1, "precision": "float32", "variables": {}, "settings": ""}


def test_summary_takes_ratios_within_a_round():
    seconds = {"ours": [1.0, 2.0, 4.0], "paddle": [3.0, 8.0, 8.0], "paddle-tuned": [2.0, 2.0, 4.0]}
    facts = {
        side: {"tokens": [300, 100], "first_loss": loss, **COMPUTES, "loaded_mib": 300, "peak_mib": 500}
        for side, loss in zip(("ours", *PADDLES), (5.0, 4.5, 5.25))
    }
    facts["paddle"]["precision"] = "bfloat16"  # its loss is no measure of whether the sides are alike
    result = step.summary(seconds, facts, steps=2)
    assert result["ratio"]["paddle"] == {"median": 3.0, "low": 2.0, "high": 4.0, "undisturbed": 3.0}
    assert result["ratio"]["paddle-tuned"] == {"median": 1.0, "low": 1.0, "high": 2.0, "undisturbed": 2.0}
    times = {"median_ms": 1000.0, "low_ms": 500.0, "high_ms": 2000.0}
    assert result["sides"]["ours"] == {
        **times,
        "tokens_per_second": 200.0,
        **COMPUTES,
        "loaded_mib": 300,
        "peak_mib": 500,
    }
    assert result["first_loss"] == {"ours": 5.0, "paddle": 4.5, "paddle-tuned": 5.25, "difference": 0.25}


def test_the_paddle_side_starts_from_the_environment_as_it_comes(monkeypatch):
    for name in ("OMP_NUM_THREADS", "MKL_DEBUG_CPU_TYPE", "FLAGS_use_stride_kernel", "MALLOC_TOP_PAD_"):
        monkeypatch.setenv(name, "7")
    monkeypatch.setenv("SOMETHING_ELSE", "7")
    monkeypatch.setattr(runtime, "SETTINGS", [runtime.Setting("MKL_DEBUG_CPU_TYPE", "7", "")])
    monkeypatch.setattr(runtime, "too_late", False)
    plain, ours = bench_sides.environment("paddle"), bench_sides.environment("ours")
    assert [name for name, value in plain.items() if value == "7"] == ["SOMETHING_ELSE"]
    assert ours["OMP_NUM_THREADS"] == "7", "what the user set stays"
    assert "MKL_DEBUG_CPU_TYPE" not in ours, "what this process set is set anew"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": "smal"}, "did you mean 'small'"),
        ({"placement": "res_post"}, "unknown placement 'res_post'"),
        ({"overrides": ["model.norm=rms"]}, "override 'model.norm': the benchmark sets it"),
        ({"overrides": ["train.optimizer.beta1=0.5"]}, "override 'train.optimizer.beta1': the benchmark sets it"),
        ({"recipe": "nothing.yaml"}, "no such file"),
        ({"rounds": 0}, "`rounds` must be at least 1, but is 0"),
        ({"steps": 0}, "`steps` must be at least 1, but is 0"),
        ({"sides": ["pytorch"]}, "unknown side 'pytorch'; did you mean 'torch'"),
    ],
)
def test_what_cannot_be_measured_is_refused(arguments, message):
    with pytest.raises(UserError, match=message):
        measure(**arguments)


def test_a_wrong_recipe_is_refused_with_all_problems():
    with pytest.raises(RecipeError, match=r"model\.d_modle"):
        measure("base", ["model.d_modle=3"])


def test_what_a_worker_refuses_reaches_the_caller():
    with pytest.raises(UserError, match="unknown task 'copi'"):
        measure("base", ["task=copi"], rounds=1, steps=1, sides=["paddle"])


def test_a_worker_that_dies_is_quoted(tmp_path):
    with (
        process.Worker("ours", tmp_path) as worker,
        pytest.raises(RuntimeError, match=r"(?s)'ours' ended.*request\.json"),
    ):
        worker.ask({"load": str(tmp_path)})


def test_a_library_that_lacks_another_is_named_with_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("")
    (tmp_path / "joeynmt").mkdir()
    (tmp_path / "joeynmt" / "__init__.py").write_text("import a_package_that_is_missing")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    message = r"the side 'joeynmt' cannot be loaded: No module named 'a_package_that_is_missing'.*pip install"
    with process.Worker("joeynmt", tmp_path) as worker, pytest.raises(UserError, match=message):
        worker.ask({"load": str(tmp_path), "decoding": {}})


def test_the_first_request_says_what_to_load(tmp_path):
    message = r"(?s)the first request must say what to `load`, but is .*steps"
    with process.Worker("ours", tmp_path) as worker, pytest.raises(RuntimeError, match=message):
        worker.ask({"first": 0, "steps": 1})


@pytest.mark.parametrize("below", [".", "multi30k"])
def test_real_text_is_taken_where_there_is_some(tmp_path, monkeypatch, below):
    monkeypatch.delenv("PADDLE_TFM_DATA", raising=False)
    assert settings.settings()["task"] == {"name": "dates"}
    monkeypatch.setenv("PADDLE_TFM_DATA", str(tmp_path))
    assert settings.settings()["task"] == {"name": "dates"}
    (tmp_path / below).mkdir(exist_ok=True)
    files = [tmp_path / below / f"train.{language}.gz" for language in ("en", "de")]
    for file in files:
        file.write_bytes(b"")
    assert settings.settings()["task"] == {"name": "parallel", "train": [str(file.resolve()) for file in files]}


def test_the_summary_of_a_search_takes_ratios_within_a_round():
    result = decode.summary({"ours": [1.0, 2.0], "joeynmt": [4.0, 6.0]}, {"ours": [[5], [6]], "joeynmt": [[5], [7]]})
    assert result["ratio"]["joeynmt"] == {"median": 3.5, "low": 3.0, "high": 4.0}
    assert result["same"] == {"joeynmt": 0.5}
    assert result["sides"]["ours"]["sentences_per_second"] == 1.33


def test_ours_in_bfloat16_is_the_same_model_with_other_products(tmp_path):
    """From the same weights and batches; where it cannot be had, the side is refused with a sentence."""
    from paddle_tfm.bench import ours
    from paddle_tfm.onednn import products

    mine, _ = sides(tmp_path)
    if products.why_not("bfloat16"):
        with pytest.raises(UserError, match=r"train\.products"):
            ours.Side(tmp_path, "ours-bfloat16")
        return
    theirs = ours.Side(tmp_path, "ours-bfloat16")
    assert (mine.precision, theirs.precision) == ("float32", "bfloat16")
    np.testing.assert_array_equal(theirs.batches[0].source, mine.batches[0].source)
    assert theirs.first_loss() == pytest.approx(mine.first_loss(), abs=0.02)
    for side in (mine, theirs):
        for number in range(3):
            side.step(number)
    difference = abs(theirs.first_loss() - mine.first_loss())
    assert 0 < difference < 0.02
