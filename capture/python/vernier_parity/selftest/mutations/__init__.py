"""The mutations, by group, in the order of the report."""

from typing import Dict, List

from ..mutation import Mutation
from . import contract, files, names, numbers, places, shapes, steps

GROUPS: Dict[str, List[Mutation]] = {
    "numbers": numbers.MUTATIONS, "places": places.MUTATIONS, "steps": steps.MUTATIONS, "names": names.MUTATIONS,
    "shapes": shapes.MUTATIONS, "files": files.MUTATIONS, "contract": contract.MUTATIONS}
