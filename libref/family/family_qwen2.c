/* family_qwen2.c: Qwen2 and Qwen2.5: the decoder with biases on q, k and v alone. */
#include "libref/family/family.h"

#include "libref/family/decoder.h"

vn_status vn_plan_qwen2(const char *path, const json_t *config, vn_plan **plan, vn_error *err)
{
	vn_config c = { .V = 151936,
		            .D = 4096,
		            .F = 22016,
		            .L = 32,
		            .H = 32,
		            .G = 32,
		            .context = 32768,
		            .norm_eps = 1e-6,
		            .rope.theta = 10000.0,
		            .qkv_bias = true };
	vn_status st;

	if ((st = vn_config_decoder(path, config, &c, err)) || (st = vn_config_qwen_window(path, config, &c, err)))
		return st;
	return vn_plan_decoder(path, &c, plan, err);
}
