"""What is made of texts that several runs share is made once."""

from types import SimpleNamespace

from paddle_tfm.sweep.cells import OncePerTexts


def plan(name, **data):
    return SimpleNamespace(name=name, run=SimpleNamespace(data=data))


def test_runs_of_the_same_texts_share_what_is_made_of_them():
    made = []
    of = OncePerTexts(lambda plan: made.append(plan.name) or plan.name)
    further = {"tests": {"beyond": {"task": {"test_min_length": 9}}, "alone": {"batch": 1}}}
    plans = [
        plan("first", task="reverse"),
        plan("other model", task="reverse", model={"norm": "rms"}),
        plan("other task", task="copy"),
        plan("further texts", task="reverse", evaluate=further),
        plan("the same in other batches", task="reverse", evaluate={"tests": {"alone": {"batch": 1}}}),
    ]
    assert [of(each) for each in plans] == ["first", "first", "other task", "further texts", "first"]
    assert made == ["first", "other task", "further texts"]
