"""names.py: mutations of names: the right numbers under another name, in another place, or missing."""

from ..edit import Edit
from ..mutation import Change, Expected, Mutation, Needs, fails, refused


def _folder(at: str) -> str:
    """The group that holds a tensor of a layer: "/step.0/layer3"."""
    return at.rpartition("/")[0]


def _step(c: Change) -> int:
    assert c.target
    return c.target.step


def _removed(e: Edit, c: Change) -> None:
    e.unlink(c.at)


def _layer_gone(e: Edit, c: Change) -> None:
    e.unlink(_folder(c.at))


def _step_gone(e: Edit, c: Change) -> None:
    e.unlink(f"/step.{_step(c)}")


def _step_renumbered(e: Edit, c: Change) -> None:
    """The last step: another number for an earlier one would break the order and be refused."""
    last = c.side.steps[-1].number
    e.move(f"/step.{last}", f"/step.{last + 7}")


def _step_misspelt(e: Edit, c: Change) -> None:
    e.move(f"/step.{_step(c)}", f"/step.0{_step(c)}")


def _misspelt(e: Edit, c: Change) -> None:
    e.move(c.at, f"{_folder(c.at)}/Atn_norm")


def _another_layer(e: Edit, c: Change) -> None:
    e.move(c.at, f"/step.{_step(c)}/layer1023/{c.at.rpartition('/')[2]}")


def _blank_behind(e: Edit, c: Change) -> None:
    e.move(c.at, c.at + " ")


def _upper_case(e: Edit, c: Change) -> None:
    e.move(c.at, f"{_folder(c.at)}/{c.at.rpartition('/')[2].upper()}")


def _control_characters(e: Edit, c: Change) -> None:
    e.move(c.at, f"{_folder(c.at)}/q\033[2Jproj")


def _added(e: Edit, c: Change) -> None:
    assert c.target
    to = f"{_folder(c.at)}/attn_again"
    e.link(to, c.at)
    e.replace(to, c.raw, c.target.dtype, c.raw.shape)  # a change of an alias of the target would not be found


def _names_swapped(e: Edit, c: Change) -> None:
    """Exchanges the datasets themselves, so that name and attributes disagree."""
    e.swap(c.at, c.there)


def _buffers_swapped(e: Edit, c: Change) -> None:
    """Exchanges the numbers, as an engine that confused two buffers would."""
    assert c.target
    e.numbers(c.at, c.other_raw, c.target.dtype)
    e.numbers(c.there, c.raw, c.target.dtype)


def _layers_swapped(e: Edit, c: Change) -> None:
    e.swap(_folder(c.at), _folder(c.there))


def _linked_elsewhere(e: Edit, c: Change) -> None:
    e.link(c.at, c.there)


def _orders_swapped(e: Edit, c: Change) -> None:
    assert c.target and c.other
    e.attribute(c.at, "order", c.other.order)
    e.attribute(c.there, "order", c.target.order)


def _other_layer(e: Edit, c: Change) -> None:
    assert c.target
    e.attribute(c.at, "layer", c.target.layer + 1)


def _other_point(e: Edit, c: Change) -> None:
    assert c.other
    e.attribute(c.at, "point", c.other.point)


def _other_op(e: Edit, c: Change) -> None:
    e.attribute(c.at, "op", "delta_rule")


_T, _P = Needs.TENSOR, Needs.PAIR
_MISSING, _MANY = Expected("missing"), Expected("missing", many=True)

MUTATIONS = [
    Mutation("missing", "a tensor is missing", _T, _MISSING, edit=_removed),
    Mutation("missing-logits", "the logits are missing", Needs.SCORES, _MISSING, edit=_removed),
    Mutation("missing-layer", "a whole layer is missing", _T, _MANY, edit=_layer_gone),
    Mutation("missing-step", "a whole step is missing", Needs.STEPS, _MANY, edit=_step_gone),
    Mutation("missing-in-reference", "a tensor is not in the reference", _T, Expected("extra"), edit=_removed,
             side="reference"),
    Mutation("extra", "an unknown tensor", _T, Expected("extra", anywhere=True), edit=_added),
    Mutation("misspelt", "a tensor whose name is not a checkpoint name", _T, _MANY, edit=_misspelt),
    Mutation("another-layer", "a tensor in a layer that the model does not have", _T, _MANY, edit=_another_layer),
    Mutation("blank-behind", "a name with a trailing blank", _T, _MANY, edit=_blank_behind),
    Mutation("upper-case", "a name in capitals", _T, _MANY, edit=_upper_case),
    Mutation("control-characters", "a name that would clear the terminal", _T, fails("control characters"),
             edit=_control_characters),
    Mutation("step-renumbered", "the last step under another number", Needs.STEPS,
             Expected("missing", many=True, anywhere=True), edit=_step_renumbered),
    Mutation("step-misspelt", "a step called step.01", Needs.STEPS, fails("is not the name of a step"),
             edit=_step_misspelt),
    Mutation("buffers-swapped", "two points of a layer exchanged", _P,
             Expected(metric="nmse", many=True, like="other"), edit=_buffers_swapped),
    Mutation("names-swapped", "two tensors with exchanged names", _P, refused("claims", "its point is"),
             edit=_names_swapped, plan=True),
    Mutation("layers-swapped", "two layers with exchanged names", Needs.LAYERS, refused("claims", "its layer is"),
             edit=_layers_swapped, plan=True),
    Mutation("second-name-elsewhere", "a second name that points to another tensor", Needs.NAMES,
             refused("claims", "its point is"), edit=_linked_elsewhere, plan=True),
    Mutation("first-name-elsewhere", "a second name that points to another layer's tensor", Needs.LAYERS,
             refused("claims", "its layer is"), edit=_linked_elsewhere, plan=True),
    Mutation("order-swapped", "two tensors exchanged in the execution order", _P, refused("claims", "order"),
             edit=_orders_swapped, plan=True, claim="order"),
    Mutation("layer-changed", "a tensor labelled with the next layer", _T, refused("claims", "its layer is"),
             edit=_other_layer, plan=True),
    Mutation("point-changed", "a tensor labelled with another point", _P, refused("claims", "its point is"),
             edit=_other_point, plan=True),
    Mutation("op-changed", "a tensor labelled with another operation", _T, refused("claims", "its op is"),
             edit=_other_op, plan=True),
]
