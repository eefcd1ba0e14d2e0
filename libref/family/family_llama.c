/* family_llama.c: Llama 3.x: the decoder without a window; biases only if the config has them. */
#include "libref/family/family.h"

#include "libref/family/decoder.h"

vn_status vn_plan_llama(const char *path, const json_t *config, vn_plan **plan, vn_error *err)
{
	vn_config c = {
		.V = 32000, .D = 4096, .F = 11008, .L = 32, .H = 32, .context = 2048, .norm_eps = 1e-6, .rope.theta = 10000.0
	};
	vn_status st;
	bool      bias = false;

	if ((st = vn_config_decoder(path, config, &c, err)) || (st = vn_config_layer_types(path, config, &c, err)) ||
	    (st = vn_config_bool(path, config, "attention_bias", &bias, err)) ||
	    (st = vn_config_bool(path, config, "mlp_bias", &c.mlp_bias, err)))
		return st;
	c.qkv_bias = c.o_bias = bias;
	return vn_plan_decoder(path, &c, plan, err);
}
