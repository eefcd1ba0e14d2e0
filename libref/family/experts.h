/* experts.h: the feed-forward part of a decoder that has experts (specs/models.md, "Experts").
 *
 * A router scores the experts, each token goes through the best of them, and what they make of it
 * is added up by weight. vn_config holds their number, how many a token uses, and their width.
 */
#pragma once

#include "libref/family/decoder.h"

/* Adds everything from attn_residual to the output of layer l. */
int       vn_decoder_experts(vn_builder *p, const vn_config *c, int l, int x);
/* Reads the number of experts, which transformers spells in two ways, and how many a token goes
 * through; the defaults are in c. */
vn_status vn_config_experts(const char *path, const json_t *o, vn_config *c, vn_error *err);
