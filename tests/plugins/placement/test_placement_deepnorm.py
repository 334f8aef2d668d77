"""What DeepNorm is for: an update moves a deep model little."""

import numpy as np
import paddle


def moved(make_model, make_batch, name, layers):
    """How far one step of plain gradient descent moves the output, per unit of the step: a mean over seeds."""
    distances = []
    for seed in range(2):
        depth = [f"model.encoder_layers={layers}", f"model.decoder_layers={layers}"]
        model, batch = make_model(f"model.placement={name}", *depth, seed=seed), make_batch(seed=seed)
        before, _ = model(batch)
        model.loss(batch).backward()
        rate = 1e-5
        with paddle.no_grad():
            for path, parameter in model.named_parameters():
                if "layers." in path and parameter.grad is not None:
                    parameter.set_value(parameter - rate * parameter.grad)
            after, _ = model(batch)
        distances.append(float((after - before).norm()) / rate)
    return float(np.mean(distances))


def test_an_update_moves_a_deep_model_less_than_it_moves_a_shallow_one_of_post_norm(make_model, make_batch):
    """2203.00555, section 4: the expected update is bounded, whatever the depth, and grows with it in post-norm."""
    post, deep = ([moved(make_model, make_batch, name, layers) for layers in (2, 12)] for name in ("post", "deepnorm"))
    assert 2 * deep[1] < post[0]
    assert 2 * post[0] < post[1]
    assert deep[1] / deep[0] < post[1] / post[0]
