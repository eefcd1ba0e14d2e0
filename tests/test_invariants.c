/* test_invariants.c: models.md 7.4 on the reference engine. */
#include "libref/exec/ref.h"
#include "tests/invariants_rope.h"
#include "tests/suite.h"

static void close_ref(void *self) { vn_ref_destroy(self); }
static void reset_ref(void *self) { vn_ref_reset(self); }
static int64_t position_of_ref(void *self) { return vn_ref_position(self); }
static vn_status run_ref(void *self, int from, int to, vn_error *err) { return vn_ref_run(self, from, to, err); }
static vn_status read_ref(void *self, int value, void *data, vn_error *err) { return vn_ref_read(self, value, data, err); }
static vn_status write_ref(void *self, int value, const void *data, vn_error *err) { return vn_ref_write(self, value, data, err); }
static vn_status rewind_ref(void *self, int64_t position, vn_error *err) { return vn_ref_rewind(self, position, err); }

static vn_status forward_ref(void *self, const int32_t *ids, int64_t tokens, const vn_taps *taps, vn_error *err)
{
	return vn_ref_forward(self, ids, tokens, taps, err);
}

static vn_status begin_ref(void *self, const int32_t *ids, int64_t tokens, const vn_taps *taps, vn_error *err)
{
	return vn_ref_begin(self, ids, tokens, taps, err);
}

static vn_status end_ref(void *self, bool keep, vn_error *err)
{
	(void)err;
	vn_ref_end(self, keep);
	return VN_OK;
}

static any open_engine(const vn_plan *p, const vn_tensor *weights, vn_policy policy)
{
	static const struct any_calls calls = { close_ref, forward_ref, begin_ref, run_ref, read_ref, write_ref, end_ref,
	                                           rewind_ref, reset_ref, position_of_ref };
	vn_ref *r = NULL;

	CU_ASSERT_EQUAL_FATAL(vn_ref_create(p, weights, &(vn_ref_options){ .policy = policy, .threads = 2 }, &r, NULL), VN_OK);
	return (any){ r, &calls };
}

int main(void)
{
	CU_TestInfo tests[] = { INVARIANTS, ROPE_INVARIANTS, CU_TEST_INFO_NULL };

	if (!open_models())
		return 2;
	const int failed = run_suite("invariants", tests);
	close_models();
	return failed;
}
