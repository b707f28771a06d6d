"""Parts that several oracles share, written a second way: NumPy, in double precision, a step or a number at a time."""

import numpy as np


def numbers(tensor):
    return tensor.detach().double().numpy()


def softmax(scores):
    exponentials = np.exp(scores - scores.max())
    return exponentials / exponentials.sum()


def linear(layer, x):
    return numbers(layer.weight) @ x + numbers(layer.bias)


def one_direction(lstm, x):
    """An LSTM over an unpadded text, gate by gate (Hochreiter and Schmidhuber's equations)."""
    w_in, w_h, b_in, b_h = (
        numbers(getattr(lstm, f"{name}_l0")) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    h = c = np.zeros(lstm.hidden_size)
    out = []
    for step in x:
        i, f, g, o = np.split(w_in @ step + b_in + w_h @ h + b_h, 4)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        out.append(h)
    return np.array(out)


def bilstm(layer, x):
    """Both directions of a :class:`elmo_tasks.nn.rnn.BiLSTM` over an unpadded text."""
    left, right = one_direction(layer.left_to_right, x), one_direction(layer.right_to_left, x[::-1])
    return np.concatenate([left, right[::-1]], axis=1)


def mixes(model, text, row):
    """The ELMo vectors ``[n, D]`` of one text at each place that the model has (equation 1)."""
    n = int(text.mask[row].sum())
    return {
        place: float(mix.gamma) * np.einsum("l,ltd->td", softmax(numbers(mix.w)), numbers(text.layers[row, :, :n]))
        for place, mix in model.elmo.mixes.items()
    }


def coupled_bilstm(layer, x, keep=(1.0, 1.0)):
    """Both directions of a :class:`elmo_tasks.nn.coupled_lstm.BiCoupledLSTM` over an unpadded text, gate by gate.

    ``keep``: the mask on the hidden state that is read, by direction.
    """
    out = []
    for k, steps in enumerate((x, x[::-1])):
        w_in, w_h, bias = (numbers(part)[k] for part in (layer.input_weight, layer.hidden_weight, layer.bias))
        h, c = numbers(layer.initial_hidden)[k], numbers(layer.initial_cell)[k]
        states = []
        for step in steps:
            i, g, o = np.split(w_in @ step + w_h @ (h * keep[k]) + bias, 3)
            i, o = (1 / (1 + np.exp(-gate)) for gate in (i, o))
            c = (1 - i) * c + i * np.tanh(g)
            h = o * np.tanh(c)
            states.append(h)
        out.append(states if k == 0 else states[::-1])
    return np.concatenate(out, axis=1)
