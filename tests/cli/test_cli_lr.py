"""`paddle-tfm lr`: the learning-rate range test from the command line."""

from command_line import TINY, call


def test_it_suggests_a_rate_and_draws(tmp_path):
    figure = tmp_path / "lr.png"
    done = call("lr", "reverse", *TINY, "--steps", 40, "--from", 1e-5, "--to", 100, "--figure", figure)
    assert done.status == 0
    assert "Try a peak of" in done.out and "1.0e-05" in done.out
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_a_test_that_ends_too_early_gives_no_advice():
    done = call("lr", "reverse", *TINY, "--steps", 10, "--from", 1e-3, "--to", 3e-3)
    assert done.status == 0
    assert "The loss was still falling at 3.0e-03" in done.out and "Try a peak" not in done.out


def test_bad_flags_are_one_sentence(tmp_path):
    for arguments, sentence in (
        (("reverse", "--from", 1, "--to", 0.1), "--from 1 must be below --to 0.1"),
        (("revers",), "did you mean 'reverse'"),
        (("reverse", *TINY, "--steps", 10, "--figure", tmp_path / "no" / "x.png"), "no file can be written there"),
        (("reverse", *TINY, "--steps", 10, "--figure", tmp_path / "x.exe"), "the figure cannot be written"),
    ):
        done = call("lr", *arguments)
        assert done.status == 2, done.err
        assert sentence in done.err and "Traceback" not in done.err
