/* family_qwen3.c: Qwen3: the decoder with a norm of each head's queries and
 * keys before rotation, and a head width of its own. */
#include "libref/family/family.h"

#include "libref/family/decoder.h"

vn_status vn_plan_qwen3(const char *path, const json_t *config, vn_plan **plan, vn_error *err)
{
	vn_config c = { .V = 151936,
		            .D = 4096,
		            .F = 22016,
		            .L = 32,
		            .H = 32,
		            .G = 32,
		            .K = 128,
		            .context = 32768,
		            .norm_eps = 1e-6,
		            .rope.theta = 10000.0,
		            .qk_norm = true };
	vn_status st;
	bool      bias = false;

	if ((st = vn_config_decoder(path, config, &c, err)) || (st = vn_config_qwen_window(path, config, &c, err)) ||
	    (st = vn_config_bool(path, config, "attention_bias", &bias, err)))
		return st;
	c.qkv_bias = c.o_bias = bias;
	return vn_plan_decoder(path, &c, plan, err);
}
