/* test_gpu_trained.h: trained models of several families, on every device and in every
 * precision. */
#pragma once

#include "libref/model/model.h"
#include "tests/support/test_gpu_help.h"

static const vn_policy *const policies[] = { &F16, &ACC16, &F32 };

typedef void (*on_trained)(const char *family, const vn_plan *p, const vn_tensor *weight, vn_gpu_options o);

static inline void each_trained(const char *const *family, size_t n, on_trained test)
{
	char     path[512];
	vn_error err = { "" };

	for (int d = 0; d < n_devices_; d++)
		for (size_t i = 0; i < COUNT(policies); i++)
			for (size_t f = 0; f < n; f++) {
				vn_model *m;
				if (!is_tried(d) || (policies[i]->sums == VN_F16 && !sums_in_half(d)))
					continue;
				snprintf(path, sizeof path, VERNIER_SOURCE "/fixtures/%s-trained", family[f]);
				CU_ASSERT_EQUAL_FATAL(vn_model_open(path, &m, &err), VN_OK);
				test(family[f], vn_model_plan(m), vn_model_weights(m), on(d, *policies[i]));
				vn_model_close(m);
			}
}
