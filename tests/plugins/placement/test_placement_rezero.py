"""ReZero: in which order its gates open."""


def alive(model, batch):
    """Where gradients are: the parts of the stacks, as (stack, whether they are gates)."""
    model.clear_gradients()
    model.loss(batch).backward()
    return {
        (name.split(".")[0], "gates" in name)
        for name, p in model.named_parameters()
        if ".layers." in name and p.grad is not None and p.grad.numpy().any()
    }


def test_gates_open_from_the_decoder_to_the_encoder_and_then_everything_learns(make_model, make_batch):
    """While the decoder's gates are closed nothing of the encoder reaches the output, not even through its gates."""
    model, batch = make_model("model.placement=rezero"), make_batch()
    alive_by_step = []
    for _ in range(3):
        alive_by_step.append(alive(model, batch))
        for name, parameter in model.named_parameters():
            if "gates" in name:
                parameter.set_value(parameter.detach() - 1e-2 * parameter.grad)
    decoder = {("decoder", True)}
    more = {*decoder, ("decoder", False), ("encoder", True)}
    assert alive_by_step == [decoder, more, {*more, ("encoder", False)}]
