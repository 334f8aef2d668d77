"""Gradient descent with momentum and a decay of weights: the twin of mutants of an optimizer."""

import paddle

from paddle_tfm.protocols import Optimizer, is_decayed


class Momentum(paddle.optimizer.Optimizer):
    def __init__(self, parameters, beta, decay):
        super().__init__(learning_rate=0.0, parameters=parameters)
        self.beta, self.decay = beta, decay
        self.moments = {parameter.name: paddle.zeros_like(parameter) for parameter in parameters}

    @paddle.no_grad()
    def step(self):
        for parameter in self._parameter_list:
            if parameter.grad is None:
                continue
            moment = self.moments[parameter.name] * self.beta + parameter.grad
            self.moments[parameter.name] = moment
            change = moment + self.decay * parameter * float(is_decayed(parameter))
            parameter.set_value(parameter - self.get_lr() * change)

    def state_dict(self):
        return dict(self.moments)

    def set_state_dict(self, state):
        self.moments = {name: state[name].clone() for name in self.moments}


class Twin(Optimizer):
    def __init__(self, beta: float = 0.9, decay: float = 0.01):
        self.beta, self.decay = beta, decay

    def create(self, parameters):
        return Momentum(list(parameters), self.beta, self.decay)
