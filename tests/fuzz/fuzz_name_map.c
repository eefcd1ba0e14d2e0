/* fuzz_name_map.c: any bytes as a name map: read, or refused with one line that says where. */
#include "capture/names/name_map.h"
#include "tests/fuzz/mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const name[] = {
		"model.layers.3.self_attn.q_proj.0", "Qcur-3.2", "Qcur-003", "layer3.q_rope", "", "99999999999999999999"
	};
	vn_name_map *m = NULL;
	vn_error     err = { "" };
	char         to[VN_NAME_MAX];
	int          n;
	if (vn_name_map_parse("fuzz.yaml", (const char *)data, size, &m, &err)) {
		if (m || !fuzz_one_line(err.text))
			abort(); /* not an assert: release builds have none */
		return 0;
	}
	for (int i = 0; i < m->n; i++)
		for (size_t k = 0; k < sizeof name / sizeof *name; k++)
			if (vn_name_map_rule_match(&m->rule[i], name[k], &n) && m->rule[i].to &&
			    vn_name_map_name(m->rule[i].to, n, to, sizeof to) &&
			    (!*to || strchr(to, '*') || (n >= 0 && strchr(to, '{'))))
				abort(); /* a name that is none */
	vn_name_map_destroy(m);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
static const char *const seeds[] = {
	"version: 1\nname: x\nrules:\n  - { from: \"{model,m.l}.layers.{n}.self_attn.q_proj{,.0}\", to: "
	"\"layer{n}.q_proj\", axes: \"batch token (head dim)\" }\n"
	"  - from: \"Qcur-{n}*\"\n    op: ROPE\n    to: \"layer{n}.q_rope\"\n    axes: \"token head (freq 2)\"\n    "
	"to_axes: \"token head (2 freq)\"\n"
	"  - { from: \"a.{n}\", plus: [\"b.{n}\"], to: \"layer{n}.output\", cut: key, fallback: true }\n"
	"  - { from: \"k-{n}\", either: [{ to: \"layer{n}.a\" }, { to: \"layer{n}.b\", axes: \"token (head dim)\" }] }\n"
	"  - { from: \"Qcur-{n}\", to: \"layer{n-1}.q_proj\" }\n"
	"  - { from: qkv, parts: [q, k, v], along: qkv, axes: \"token qkv\" }\n"
	"  - { from: past, to: \"layer{n}.k_cache\", each: layer, axes: \"layer key kv_head dim\" }\n  - { from: "
	"\"*drop\", ignore: true }\n",
};

int main(int argc, char **argv)
{
	return fuzz_texts(argc, argv, seeds, sizeof seeds / sizeof *seeds);
}
#endif
