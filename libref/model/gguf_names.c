/* gguf_names.c: see gguf_names.h. */
#include "libref/model/gguf_names.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The weight of a name, in a layer or outside; *suffix: the part that both sides share. */
static const vn_family_weight *find_weight(const vn_family_weight *r, bool layer, const char *name, const char **suffix)
{
	for (; r->hf; r++) {
		const size_t n = strlen(r->gguf);
		*suffix = name + n;
		if ((vn_point_get(r->point)->place == VN_INSIDE_LAYER) == layer && strncmp(name, r->gguf, n) == 0 &&
		    (r->whole ? !**suffix : strcmp(*suffix, ".weight") == 0 || strcmp(*suffix, ".bias") == 0))
			return r;
	}
	return NULL;
}

/* Parses "blk.17.rest" into 17 and its rest; -1: another form. */
static int64_t layer_of(const char *name, const char **rest)
{
	const char *p = name + 4;
	int64_t     n = 0;

	if (strncmp(name, "blk.", 4) != 0 || *p < '0' || *p > '9' || (*p == '0' && p[1] != '.'))
		return -1;
	for (; *p >= '0' && *p <= '9' && n < 1000000; p++)
		n = 10 * n + (*p - '0');
	*rest = p + 1;
	return *p == '.' ? n : -1;
}

vn_gguf_change vn_gguf_name(const vn_family *f, int64_t layers, int64_t extra, const char *name, char *hf, size_t room)
{
	const char             *rest = name, *suffix = "";
	const int64_t           layer = layer_of(name, &rest);
	const vn_family_weight *r = find_weight(f->weights, layer >= 0, rest, &suffix);

	snprintf(hf, room, "%s", name);
	if (layer >= layers && layer < layers + extra) {
		snprintf(hf, room, "mtp.%s", name);
		return VN_GGUF_AS_IT_WAS;
	}
	if (r && layer < 0)
		snprintf(hf, room, "%s%s", r->hf, suffix);
	else if (r)
		snprintf(hf, room, "%s%lld.%s%s", f->naming->layers, (long long)layer, r->hf, suffix);
	if (r && f->gguf.interleaved && r->point == VN_POINT_Q_PROJ)
		return VN_GGUF_ROTATED_Q;
	if (r && f->gguf.interleaved && r->point == VN_POINT_K_PROJ)
		return VN_GGUF_ROTATED_K;
	return r ? r->change : VN_GGUF_AS_IT_WAS;
}
