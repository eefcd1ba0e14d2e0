/* test_gpu_invariants.c: models.md 7.3 on every Vulkan device. */
#include "tests/support/invariants.h"
#include "tests/support/test_gpu_help.h"

#include "libref/exec/ref.h"

static int  device_; /* under test */
static bool paged_;

static any open_engine(const vn_plan *p, const vn_tensor *weights, vn_policy policy)
{
	const model    m = { (vn_plan *)(uintptr_t)p, (vn_tensor *)(uintptr_t)weights };
	vn_gpu_options o = on(device_, policy);
	o.paged = paged_;
	o.block = 5;
	o.scatter = 11;
	return (any) { engine(&m, o), &vn_gpu_ops };
}

static bool is_subject_tried(int line)
{
	return is_tried_at(device_, line);
}

/* ---- far from the prompt ------------------------------------------------------------------- */

static vn_ref *reference(const subject *s, vn_policy policy)
{
	vn_ref *r = NULL;
	CU_ASSERT_EQUAL_FATAL(
		vn_ref_create(s->plan, s->weights, &(vn_ref_options) { .policy = policy, .threads = 2 }, &r, NULL), VN_OK);
	return r;
}

static double nmse(const float *x, const float *ref, size_t n)
{
	double err = 0.0, all = 0.0;
	for (size_t i = 0; i < n; i++) {
		err += pow((double)x[i] - (double)ref[i], 2);
		all += pow((double)ref[i], 2);
	}
	return all > 0.0 ? err / all : err;
}

/* The ids are given, so that both stay on one path. Every checkpoint of the last
 * step; one row is a small sample, and its floor the same. */
static void sixty_four_steps_on(const subject *s)
{
	enum { PROMPT = 32, STEPS = 64 };
	any     e = open_engine(s->plan, s->weights, IN_F16);
	vn_ref *r[2] = { reference(s, IN_F32), reference(s, IN_F16) };
	seen    gpu = see_nothing(s->plan), ref[2] = { see_nothing(s->plan), see_nothing(s->plan) };
	bool   *want = choice(s->plan, "*");
	double *err = calloc((size_t)s->plan->n_values, sizeof *err),
		   *floor_ = calloc((size_t)s->plan->n_values, sizeof *floor_);
	double   worst = 0.0;
	vn_error why;

	for (int t = 0; t < PROMPT + STEPS; t += t ? 1 : PROMPT) {
		int32_t ids[PROMPT];
		for (int i = 0; i < PROMPT; i++)
			ids[i] = ((t + i) * 37 + (t + i) * (t + i) % 7 + 11) % s->plan->vocab;
		run_call(s, e, ids, t ? 1 : PROMPT, "*", &gpu);
		for (int i = 0; i < 2; i++) {
			const vn_taps taps = { .want = want,
				                   .sink = { .ctx = &ref[i], .begin = see_begin, .write = see_write, .end = see_end } };
			must(vn_ref_ops.forward(r[i], ids, t ? 1 : PROMPT, &taps, &why), &why);
		}
		for (int v = 0; v < s->plan->n_values; v++) {
			if (s->plan->value[v].alias_of >= 0 || t < PROMPT + STEPS - 16)
				continue;
			err[v] += nmse(gpu.value[v].x, ref[0].value[v].x, gpu.value[v].n);
			floor_[v] += nmse(ref[1].value[v].x, ref[0].value[v].x, gpu.value[v].n);
		}
	}
	for (int v = 0; v < s->plan->n_values; v++)
		if (s->plan->value[v].alias_of < 0) {
			CU_ASSERT_TRUE(err[v] <= 4.0 * floor_[v]);
			if (!(err[v] <= 4.0 * floor_[v]))
				printf("\n  %s: %g, floor %g", s->plan->value[v].name, err[v], floor_[v]);
			worst = fmax(worst, floor_[v] > 0.0 ? err[v] / floor_[v] : 0.0);
		}
	printf("%s: worst %.2f floors ", s->name, worst);
	vn_ref_ops.destroy(r[0]), vn_ref_ops.destroy(r[1]);
	forget(&gpu), forget(&ref[0]), forget(&ref[1]);
	free(err), free(floor_), free(want);
	e.calls->destroy(e.self);
}

static void sixty_four_steps_on_f16_is_within_four_floors(void)
{
	int tried = 0;

	for (const subject *s = subjects; s < subjects + MODELS; s++)
		if ((strcmp(s->name, "qwen2") == 0 || hybrid(s)) && is_tried(device_)) {
			sixty_four_steps_on(s);
			tried++;
		}
	CU_ASSERT(tried > 0);
}

int main(void)
{
	CU_TestInfo contiguous[] = { INVARIANTS,
		                         ROPE_INVARIANTS,
		                         { "sixty-four steps on, f16 is within four floors",
		                           sixty_four_steps_on_f16_is_within_four_floors },
		                         CU_TEST_INFO_NULL };
	CU_TestInfo paged[] = { CACHE_INVARIANTS, CU_TEST_INFO_NULL };
	int         bad = 0;

	if (find_devices() == 0)
		return 77;
	use_kept_devices();
	if (!open_models())
		return 2;
	for (device_ = 0; device_ < n_devices_; device_++)
		for (int p = 0; p < 2; p++) {
			paged_ = p;
			bad |= p ? run_suite("gpu invariants, paged", paged) : run_suite("gpu invariants, contiguous", contiguous);
		}
	close_models();
	close_kept_devices();
	free(devices_);
	return bad;
}
