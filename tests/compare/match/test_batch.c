/* test_batch.c: tests compare/match/batch.c, pairs of checkpoints measured many at a time. */
#include "compare/match/batch.h"

#include "capture/view/view.h"
#include "tests/support/match_help.h"

#include <math.h>

/* More points than one batch measures, so that a second, small batch begins. */
enum { MANY = 1030, TENSORS = 8 };

static int n_done, n_unread;

static int entry_of(const vn_opened *o, const vn_checkpoint *p)
{
	(void)o;
	return p->cand;
}

static void note_measured(vn_checkpoint *p, const vn_measured *m)
{
	p->m = *m;
	n_done++;
}

static void unread(vn_checkpoint *p, const char *why)
{
	p->status = VN_UNREADABLE;
	(void)why;
	n_unread++;
}

/* Records n tensors of the two numbers i and 1; the candidate's are off by `off`. */
static void record(const char *name, int n, float off)
{
	char      point[32];
	vn_store *s = begin_recording(name, 1, 0, NULL);

	begin_step(s, 0, 0, 1, 0, 1);
	for (int i = 0; i < n; i++) {
		const float x[] = { (float)i + off, 1 };
		snprintf(point, sizeof point, "mine.t%04d", i);
		put_tensor(s, point, "token hidden", 1, 2, x);
	}
	commit(s);
}

/* Measures n points; the caller closes. */
static vn_status measured(vn_comparison *c, const vn_compare_options *o, vn_checkpoint *point, int n, vn_error *err)
{
	*c = (vn_comparison) { .opened = { .request.options = o, .ref = opened("ref"), .cand = opened("cand") } };
	c->result.checkpoints.of = point;
	c->result.checkpoints.n = n;
	const vn_batch b = { .other = c->opened.cand, .entry = entry_of, .done = note_measured, .unread = unread };
	n_done = n_unread = 0;
	return vn_batch_measure(&c->opened, &c->result.checkpoints, &b, err);
}

static void closed(vn_comparison *c)
{
	c->result.checkpoints.of = NULL; /* the test's own */
	c->result.checkpoints.n = 0;
	close_sides(c);
}

static void no_point_is_no_measurement(void)
{
	const vn_compare_options o = { .threads = 1 };
	vn_comparison            c;

	record("ref", 1, 0);
	record("cand", 1, 0);
	CU_ASSERT_EQUAL(measured(&c, &o, NULL, 0, NULL), VN_OK);
	CU_ASSERT_EQUAL(n_done + n_unread, 0);
	closed(&c);
}

/* Pairs all tensors except the one that the candidate lacks, and the last one with the candidate's
 * first. */
static void each_point_has_its_own_measurement(void)
{
	static vn_checkpoint point[MANY];

	record("ref", TENSORS, 0);
	record("cand", TENSORS, 0.5f);
	for (int threads = 1; threads <= 2; threads++) {
		const vn_compare_options o = { .threads = threads };
		vn_comparison            c;
		int                      wrong = 0;
		for (int i = 0; i < MANY; i++)
			point[i] = (vn_checkpoint) { .name = "t", .ref = i % TENSORS, .cand = i == 7 ? -1 : i % TENSORS };
		point[MANY - 1].cand = 0;
		CU_ASSERT_EQUAL(measured(&c, &o, point, MANY, NULL), VN_OK);
		CU_ASSERT_EQUAL(n_done, MANY - 1);
		CU_ASSERT_EQUAL(n_unread, 0);
		for (int i = 0; i < MANY; i++) {
			const int    at_ref = i % TENSORS;
			const double want = i == MANY - 1 ? at_ref - 0.5 : 0.5;
			wrong += i != 7 &&
			         !(point[i].m.n == 2 && point[i].m.value[VN_M_MAX_ABS] == want && point[i].m.ref_at == at_ref);
		}
		CU_ASSERT_EQUAL(wrong, 0);
		CU_ASSERT_EQUAL(point[7].m.n, 0); /* not this one */
		closed(&c);
	}
}

static void numbers_that_are_not_finite_are_counted(void)
{
	const vn_compare_options o = { .threads = 1 };
	vn_checkpoint            point = { .name = "t" };
	vn_comparison            c;

	record("ref", 1, 0);
	record("cand", 1, NAN);
	CU_ASSERT_EQUAL(measured(&c, &o, &point, 1, NULL), VN_OK);
	CU_ASSERT_EQUAL(n_done, 1);
	CU_ASSERT_EQUAL(point.m.finite, 1);
	CU_ASSERT_EQUAL(point.m.nan[1], 1);
	CU_ASSERT_EQUAL(point.m.value[VN_M_NONFINITE], 1);
	closed(&c);
}

/* Minus infinity on both sides is a mask of attention scores, and of nothing else. */
static void a_mask_is_one_of_attention_scores_alone(void)
{
	static const char *const names[] = { "layer0.attn_scores", "layer0.mlp_norm" };
	const vn_compare_options o = { .threads = 1 };
	const float              x[] = { 1, -INFINITY };

	for (int i = 0; i < 2; i++) {
		vn_checkpoint point = { .name = "t" };
		vn_comparison c;
		for (int side = 0; side < 2; side++) {
			vn_store *s = begin_recording(side ? "cand" : "ref", 1, 0, NULL);
			begin_step(s, 0, 0, 1, 0, 1);
			put_tensor(s, names[i], i ? "" : "token key", 1, 2, x);
			commit(s);
		}
		CU_ASSERT_EQUAL(measured(&c, &o, &point, 1, NULL), VN_OK);
		CU_ASSERT_EQUAL(point.m.masked, i == 0);
		closed(&c);
	}
}

/* Asked for with result.bits. */
static void bits_are_counted_where_they_are_asked_for(void)
{
	const vn_compare_options o = { .threads = 1 };

	record("ref", 1, 0);
	record("cand", 1, 0.5f);
	for (int bits = 0; bits < 2; bits++) {
		vn_checkpoint  point = { .name = "t" };
		vn_comparison  c = { .opened = { .request.options = &o, .ref = opened("ref"), .cand = opened("cand") } };
		const vn_batch b = { .other = c.opened.cand, .entry = entry_of, .done = note_measured, .unread = unread };
		c.result.checkpoints.of = &point;
		c.result.checkpoints.n = 1;
		if (bits)
			CU_ASSERT_EQUAL_FATAL(vn_limits_bitwise(&c.opened.request.limits, NULL), VN_OK);
		CU_ASSERT_EQUAL(vn_batch_measure(&c.opened, &c.result.checkpoints, &b, NULL), VN_OK);
		CU_ASSERT_EQUAL(point.m.has[VN_M_DIFFERING], bits);
		CU_ASSERT_EQUAL(bits ? point.m.value[VN_M_DIFFERING] : 1, 1);
		closed(&c);
	}
}

/* Adds one to a byte of the candidate's tensor 1, whose numbers are 1 and 1. */
static void damage(void)
{
	static unsigned char block[1 << 16];
	const float          x[] = { 1, 1 };
	size_t               i = 0;
	FILE                *f = fopen(at("cand"), "r+b");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	const size_t size = fread(block, 1, sizeof block, f);
	while (i + sizeof x <= size && memcmp(block + i, x, sizeof x) != 0)
		i++;
	CU_ASSERT_TRUE_FATAL(i + sizeof x <= size);
	CU_ASSERT_EQUAL(fseek(f, (long)i, SEEK_SET), 0);
	CU_ASSERT_EQUAL(fputc(block[i] + 1, f), block[i] + 1);
	fclose(f);
}

/* The digest is taken as the numbers are measured; a tensor that is known to be damaged
 * ends the measuring. */
static void damaged_numbers_are_found_and_then_end_it(void)
{
	const vn_compare_options o = { .threads = 1 };
	vn_checkpoint            point[3];
	vn_comparison            c;
	vn_error                 err = { "" };
	vn_verified              ref = { 0 }, cand = { 0 };

	record("ref", 3, 0);
	record("cand", 3, 0);
	damage();
	for (int i = 0; i < 3; i++)
		point[i] = (vn_checkpoint) { .name = "t", .ref = i, .cand = i };
	CU_ASSERT_EQUAL(measured(&c, &o, point, 3, NULL), VN_OK);
	CU_ASSERT_EQUAL(n_done, 3);
	vn_recording_verified(c.opened.ref, &ref);
	vn_recording_verified(c.opened.cand, &cand);
	CU_ASSERT_EQUAL(ref.checked, 3);
	CU_ASSERT_EQUAL(cand.checked, 2);
	CU_ASSERT_EQUAL(cand.wrong, 1);
	const vn_batch b = { .other = c.opened.cand, .entry = entry_of, .done = note_measured, .unread = unread };
	n_done = 0;
	CU_ASSERT_EQUAL(vn_batch_measure(&c.opened, &c.result.checkpoints, &b, &err), VN_ERR_DAMAGED);
	CU_ASSERT_EQUAL(n_done, 1); /* what came before it */
	CU_ASSERT_EQUAL(n_unread, 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, at("cand")));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "mine.t0001"));
	closed(&c);
}

/* Two comparisons open the reference twice; the second lacks a tensor, and finds another
 * before the first does. */
static void comparisons_of_one_reference_are_measured_together(void)
{
	const vn_compare_options o = { .threads = 2 };
	static vn_checkpoint     point[2][TENSORS];
	vn_comparison            c[2];
	vn_measuring             m[2];

	record("ref", TENSORS, 0);
	record("cand", TENSORS, 0.5f);
	record("cand2", TENSORS, 0.25f);
	n_done = n_unread = 0;
	for (int k = 0; k < 2; k++) {
		c[k] = (vn_comparison) {
			.opened = { .request.options = &o, .ref = opened("ref"), .cand = opened(k ? "cand2" : "cand") }
		};
		for (int i = 0; i < TENSORS; i++)
			point[k][i] = (vn_checkpoint) { .name = "t", .order = k ? 2 * i : 3 * i, .ref = i, .cand = i };
		c[k].result.checkpoints.of = point[k];
		c[k].result.checkpoints.n = TENSORS;
		m[k] = (vn_measuring) { .o = &c[k].opened,
			                    .all = &c[k].result.checkpoints,
			                    .batch = { c[k].opened.cand, entry_of, note_measured, unread } };
	}
	point[1][3].cand = -1;
	vn_measure_together(m, 2);
	CU_ASSERT_EQUAL(n_done, 2 * TENSORS - 1);
	CU_ASSERT_EQUAL(n_unread, 0);
	for (int k = 0; k < 2; k++) {
		vn_verified of_ref = { 0 };
		CU_ASSERT_EQUAL(m[k].st, VN_OK);
		for (int i = 0; i < TENSORS; i++)
			CU_ASSERT(point[k][i].cand < 0 ||
			          (point[k][i].m.value[VN_M_MAX_ABS] == (k ? 0.25 : 0.5) && point[k][i].m.ref_at == i));
		vn_recording_verified(c[k].opened.ref, &of_ref); /* each knows that its digests hold */
		CU_ASSERT_EQUAL(of_ref.checked, k ? TENSORS - 1 : TENSORS);
		closed(&c[k]);
	}
}

/* A candidate that is read in parts shares nothing; the two behind it share the
 * reference, and its digest. */
static void a_candidate_that_is_read_in_parts_leaves_the_reference_to_the_others(void)
{
	enum { LARGE = 4200000, ALL = 3 };
	const vn_compare_options o = { .threads = 1 };
	static const char *const name[] = { "ref", "transposed", "cand" };
	vn_checkpoint            point[ALL];
	vn_comparison            c[ALL];
	vn_measuring             m[ALL];
	float                   *x = calloc(LARGE, sizeof *x);

	CU_ASSERT_PTR_NOT_NULL_FATAL(x);
	for (int i = 0; i < LARGE; i++)
		x[i] = (float)(i % 1000);
	for (int k = 0; k < 3; k++) {
		vn_store *s = begin_recording(name[k], 1, 0, NULL);
		begin_step(s, 0, 0, 1, 0, 1);
		put_tensor(s, "mine.t0000", k == 1 ? "hidden token" : "token hidden", k == 1 ? LARGE : 1, k == 1 ? 1 : LARGE,
		           x);
		commit(s);
	}
	n_done = n_unread = 0;
	for (int k = 0; k < ALL; k++) {
		c[k] = (vn_comparison) {
			.opened = { .request.options = &o, .ref = opened("ref"), .cand = opened(k ? "cand" : "transposed") }
		};
		point[k] = (vn_checkpoint) { .name = "t" };
		c[k].result.checkpoints.of = &point[k];
		c[k].result.checkpoints.n = 1;
		m[k] = (vn_measuring) { .o = &c[k].opened,
			                    .all = &c[k].result.checkpoints,
			                    .batch = { c[k].opened.cand, entry_of, note_measured, unread } };
	}
	vn_view_axes(c[0].opened.cand, 0, (const int[VN_MAX_RANK]) { 1, 0 });
	vn_measure_together(m, ALL);
	CU_ASSERT_EQUAL(n_done, ALL);
	CU_ASSERT_EQUAL(n_unread, 0);
	for (int k = 0; k < ALL; k++) {
		vn_verified of_ref = { 0 };
		CU_ASSERT_EQUAL(m[k].st, VN_OK);
		CU_ASSERT_EQUAL(point[k].m.value[VN_M_MAX_ABS], 0);
		vn_recording_verified(c[k].opened.ref, &of_ref);
		CU_ASSERT_EQUAL(of_ref.checked, 1);
		closed(&c[k]);
	}
	free(x);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(no_point_is_no_measurement),
		TEST(each_point_has_its_own_measurement),
		TEST(numbers_that_are_not_finite_are_counted),
		TEST(a_mask_is_one_of_attention_scores_alone),
		TEST(bits_are_counted_where_they_are_asked_for),
		TEST(damaged_numbers_are_found_and_then_end_it),
		TEST(comparisons_of_one_reference_are_measured_together),
		TEST(a_candidate_that_is_read_in_parts_leaves_the_reference_to_the_others),
		CU_TEST_INFO_NULL,
	};

	if (!make_folder())
		return 1;
	const int failed = run_suite("batch", tests);
	return !remove_folder() || failed;
}
