"""padding.py: finds the padding tokens of a call from the mask that the body of a transformers model gets.

The mask is either the user's, (B, tokens so far) with 0 at padding, or one that transformers made from it, as
generate() does for a static cache: (B, 1, T, keys) with False or the least number where a query does not see a key, a
BlockMask, or one mask for each kind of layer. In the latter, a token that does not see itself is padding.
"""

from typing import Any, Optional

import torch

UNSEEN = -1e4  # added to a score, it makes the probability 0; float16's least number is -65504


def hidden(mask: Any, past: int, tokens: int) -> Optional[Any]:
    """(B or 1, tokens), True at padding; None if the mask does not show padding. past: tokens in the cache."""
    if isinstance(mask, dict):
        found = [hidden(m, past, tokens) for m in mask.values()]
        return next((m for m in found if m is not None), None)
    if hasattr(mask, "mask_mod"):
        rows, at = (torch.arange(mask.shape[0], device=mask.kv_indices.device)[:, None],
                    torch.arange(tokens, device=mask.kv_indices.device))
        return ~mask.mask_mod(rows, torch.zeros_like(at), at, past + at)
    if not isinstance(mask, torch.Tensor) or mask.ndim not in (2, 4):
        return None
    keys = mask.shape[-1]
    # a static cache has unused slots at the end; a cache with a window dropped the first keys
    first = past if keys >= past + tokens else keys - tokens
    if first < 0 or (mask.ndim == 4 and mask.shape[-2] != tokens):
        return None
    if mask.ndim == 2:
        return mask[:, first : first + tokens] == 0
    seen = mask[:, 0, :, first : first + tokens].diagonal(dim1=-2, dim2=-1)
    return ~seen if seen.dtype == torch.bool else seen <= UNSEEN
