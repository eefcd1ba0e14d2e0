/* test_many.c: several candidates reduced to a row per checkpoint, and the vote. */
#include "compare/comparison/checkpoint.h"
#include "compare/many/many_report.h"
#include "compare/many/many_send.h"
#include "compare/many/vote.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 8 };

static const char *const names[] = { "embed", "layer0.q_rope", "layer0.output", "layer1.q_rope", "logits" };

/* A document with one checkpoint for each character of fails, which says whether it is outside; a
 * blank: the checkpoint is absent. */
static vn_document make_document(vn_checkpoint *point, const char *fails)
{
	vn_document doc = { .checkpoint = point, .first = -1, .within = true };
	for (int i = 0; fails[i]; i++) {
		if (fails[i] == ' ')
			continue;
		point[doc.n++] = (vn_checkpoint) { .name = names[i],
			                               .status = fails[i] == 'x' ? VN_OUTSIDE : VN_WITHIN,
			                               .fails = fails[i] == 'x',
			                               .worst = -1,
			                               .pooled_small = -1,
			                               .layer = -1 };
		if (fails[i] != 'x')
			continue;
		doc.within = false;
		doc.first = doc.first < 0 ? doc.n - 1 : doc.first;
	}
	return doc;
}

static void add_candidate(vn_many *m, const char *path, const char *fails)
{
	vn_checkpoint     point[MOST];
	const vn_document doc = make_document(point, fails);
	vn_error          err = { "" };
	CU_ASSERT_EQUAL(vn_many_add(m, path, &doc, &err), VN_OK);
}

static void add_trouble(vn_many *m, const char *path)
{
	const vn_lines none = { 0 };
	vn_error       err = { "" }, why = { "it is damaged" };
	CU_ASSERT_EQUAL(vn_many_add_trouble(m, path, VN_ERR_FORMAT, &why, &none, &err), VN_OK);
}

static int row_of(const vn_many *m, const char *label)
{
	for (int i = 0; i < m->n_rows; i++)
		if (strcmp(m->row[i].label, label) == 0)
			return i;
	return -1;
}

static void the_odd_one_out_is_the_only_one_outside(void)
{
	vn_many  m;
	vn_error err = { "" };
	char     text[VN_MANY_LETTERS];

	CU_ASSERT_EQUAL_FATAL(vn_many_begin(&m, "ref.h5", 0, &err), VN_OK);
	add_candidate(&m, "a", ".xx.x");
	add_candidate(&m, "b", "..x.x");
	add_candidate(&m, "c", "....x");
	CU_ASSERT_EQUAL(m.n_rows, 5);
	CU_ASSERT_EQUAL(vn_many_odd(&m, 0), VN_MANY_NONE);
	CU_ASSERT_EQUAL(vn_many_odd(&m, 1), 0);
	CU_ASSERT_EQUAL(vn_many_odd(&m, 2), VN_MANY_SEVERAL);
	CU_ASSERT_EQUAL(vn_many_odd(&m, 4), VN_MANY_ALL);
	CU_ASSERT_STRING_EQUAL(vn_many_say_odd(&m, 2, text), "A, B");
	CU_ASSERT_EQUAL(m.candidate[0].first, 1);
	CU_ASSERT_EQUAL(m.candidate[1].first, 2);
	CU_ASSERT_EQUAL(vn_many_status(&m), 1);
	vn_many_finish(&m);
}

static void one_candidate_alone_is_no_odd_one(void)
{
	vn_many  m;
	vn_error err = { "" };

	CU_ASSERT_EQUAL_FATAL(vn_many_begin(&m, "ref.h5", 0, &err), VN_OK);
	add_candidate(&m, "a", ".x");
	add_trouble(&m, "b");
	CU_ASSERT_EQUAL(vn_many_odd(&m, 1), VN_MANY_SEVERAL);
	CU_ASSERT_EQUAL(vn_many_status(&m), 2);
	CU_ASSERT_PTR_NULL(vn_many_cell_of(&m, 1, 1));
	vn_many_finish(&m);
}

static void a_checkpoint_of_one_candidate_has_a_row_behind_the_others(void)
{
	vn_many  m;
	vn_error err = { "" };

	CU_ASSERT_EQUAL_FATAL(vn_many_begin(&m, "ref.h5", 0, &err), VN_OK);
	add_candidate(&m, "a", ". ..");
	add_candidate(&m, "b", ".x..");
	CU_ASSERT_EQUAL(m.n_rows, 4);
	CU_ASSERT_EQUAL(row_of(&m, "layer0.q_rope"), 3);
	CU_ASSERT_EQUAL(row_of(&m, "layer1.q_rope"), 2);
	CU_ASSERT_PTR_NULL(vn_many_cell_of(&m, 3, 0));
	CU_ASSERT_EQUAL(vn_many_odd(&m, 3), 1);
	CU_ASSERT_EQUAL(vn_many_cell_of(&m, 3, 1)->point, 1);
	CU_ASSERT_EQUAL(m.candidate[1].first, 3);
	add_candidate(&m, "c", "...x");
	CU_ASSERT_EQUAL(m.candidate[2].first, row_of(&m, "layer1.q_rope"));
	vn_many_finish(&m);
}

/* Sends m, which holds one candidate. It becomes the next candidate of `to`. */
static void send_to(vn_many *to, vn_many *m)
{
	vn_error err = { "" };
	FILE    *file = tmpfile();

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_TRUE(vn_many_send(m, file));
	CU_ASSERT_EQUAL(vn_many_receive(to, m->candidate[0].path, file, &err), VN_OK);
	fclose(file);
}

static void what_another_process_found_is_the_same_here(void)
{
	vn_many  here, there, m;
	vn_error err = { "" };

	CU_ASSERT_EQUAL_FATAL(vn_many_begin(&here, "ref.h5", 0, &err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(vn_many_begin(&m, "ref.h5", 0, &err), VN_OK);
	add_candidate(&here, "a", ". ..");
	add_candidate(&here, "b", ".x..");
	add_trouble(&here, "c");
	add_candidate(&m, "a", ". ..");
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL_FATAL(vn_many_begin(&there, "ref.h5", 0, &err), VN_OK);
		if (i == 0)
			add_candidate(&there, "b", ".x..");
		else
			add_trouble(&there, "c");
		send_to(&m, &there);
		vn_many_finish(&there);
	}
	CU_ASSERT_EQUAL_FATAL(m.n, here.n);
	CU_ASSERT_EQUAL_FATAL(m.n_rows, here.n_rows);
	for (int i = 0; i < m.n; i++) {
		const vn_many_candidate *a = &here.candidate[i], *b = &m.candidate[i];
		CU_ASSERT_STRING_EQUAL(a->path, b->path);
		CU_ASSERT_STRING_EQUAL(a->verdict, b->verdict);
		CU_ASSERT_EQUAL(a->status, b->status);
		CU_ASSERT_EQUAL(a->first, b->first);
		CU_ASSERT_EQUAL(a->trouble == NULL, b->trouble == NULL);
		if (a->trouble) {
			CU_ASSERT_STRING_EQUAL(a->trouble, b->trouble);
		} else {
			CU_ASSERT_STRING_EQUAL(a->counts, b->counts);
			CU_ASSERT_STRING_EQUAL(a->limits, b->limits);
		}
		for (int row = 0; row < m.n_rows; row++) {
			const vn_many_cell *x = vn_many_cell_of(&here, row, i), *y = vn_many_cell_of(&m, row, i);
			CU_ASSERT_STRING_EQUAL(here.row[row].label, m.row[row].label);
			CU_ASSERT_EQUAL_FATAL(x == NULL, y == NULL);
			CU_ASSERT(!x || (x->fails == y->fails && x->point == y->point && x->status == y->status));
		}
	}
	vn_many_finish(&here);
	vn_many_finish(&m);
}

static void what_a_killed_process_left_is_refused(void)
{
	vn_many  there, m;
	vn_error err = { "" };
	FILE    *file = tmpfile();

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_EQUAL_FATAL(vn_many_begin(&there, "ref.h5", 0, &err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(vn_many_begin(&m, "ref.h5", 0, &err), VN_OK);
	add_candidate(&there, "b", ".x..");
	CU_ASSERT_TRUE(vn_many_send(&there, file));
	CU_ASSERT_EQUAL(ftruncate(fileno(file), ftell(file) - 1), 0);
	CU_ASSERT_EQUAL(vn_many_receive(&m, "b", file, &err), VN_ERR_IO);
	fclose(file);
	vn_many_finish(&there);
	vn_many_finish(&m);
}

static const int digits[] = { 10, 10, 10, 10 };

/* Pairs 0-1, 0-2, 1-2 of three recordings. */
static void two_that_agree_outvote_the_third(void)
{
	vn_many  m;
	vn_vote  v;
	vn_error err = { "" };
	char    *path[] = { (char[]) { "a" }, (char[]) { "b" }, (char[]) { "c" } };

	CU_ASSERT_EQUAL_FATAL(vn_many_begin(&m, "a", 0, &err), VN_OK);
	add_candidate(&m, "b", ".xx");
	add_candidate(&m, "c", ".xx");
	add_candidate(&m, "c", "..x");
	CU_ASSERT_EQUAL_FATAL(vn_vote_count(&v, &m, path, digits, 3, false, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_many_odd(&v.many, 0), VN_MANY_NONE);
	CU_ASSERT_EQUAL(vn_many_odd(&v.many, 1), 0);           /* b and c agree */
	CU_ASSERT_EQUAL(vn_many_odd(&v.many, 2), VN_MANY_ALL); /* nobody agrees */
	CU_ASSERT_EQUAL(v.many.elected, 1);
	CU_ASSERT_EQUAL(v.many.candidate[1].first, 2);
	CU_ASSERT(vn_many_cell_of(&v.many, 1, 1)->self);
	vn_vote_finish(&v);
	vn_many_finish(&m);
}

/* The outvoted recording is the reference of both its pairs. */
static void what_pairs_say_of_the_outvoted_is_said_of_it_alone(void)
{
	vn_many  m;
	vn_vote  v;
	vn_error err = { "" };
	char    *path[] = { (char[]) { "a.h5" }, (char[]) { "b.h5" }, (char[]) { "c.h5" } };
	int      formats[] = { 10, 10, 10 };

	for (int finer = 0; finer < 2; finer++) {
		formats[0] = finer ? 23 : 10;
		CU_ASSERT_EQUAL_FATAL(vn_many_begin(&m, "a.h5", 0, &err), VN_OK);
		add_candidate(&m, path[1], "xx");
		add_candidate(&m, path[2], "xx");
		add_candidate(&m, path[2], "..");
		vn_lines_add(&m.candidate[0].warnings, "the reference is wrong");
		vn_lines_add(&m.candidate[1].warnings, "the reference is wrong");
		vn_lines_add(&m.candidate[0].next, "vernier explain a.h5 b.h5 --model m");
		vn_lines_add(&m.candidate[1].next, "vernier explain a.h5 c.h5 --model m");
		CU_ASSERT_EQUAL_FATAL(vn_vote_count(&v, &m, path, formats, 3, true, &err), VN_OK);
		CU_ASSERT_EQUAL(v.many.elected, 1);
		CU_ASSERT_EQUAL(v.many.candidate[0].status, 1);
		CU_ASSERT_EQUAL(v.many.candidate[1].status, 0);
		CU_ASSERT_EQUAL(v.many.candidate[2].status, 0);
		CU_ASSERT_EQUAL_FATAL(v.many.candidate[0].warnings.n, 1);
		CU_ASSERT_STRING_EQUAL(v.many.candidate[0].warnings.line[0], "A as the reference of B: the reference is wrong");
		CU_ASSERT_EQUAL_FATAL(v.many.candidate[0].next.n, !finer);
		if (!finer)
			CU_ASSERT_STRING_EQUAL(v.many.candidate[0].next.line[0], "vernier explain b.h5 a.h5 --model m");
		vn_vote_finish(&v);
		vn_many_finish(&m);
	}
}

static void two_against_two_have_no_majority(void)
{
	static const char *const said[] = { ".", "x", "x", "x", "x", "." }; /* 0 and 1 agree, 2 and 3 do */
	vn_many                  m;
	vn_vote                  v;
	vn_error                 err = { "" };
	char                    *path[] = { (char[]) { "a" }, (char[]) { "b" }, (char[]) { "c" }, (char[]) { "d" } };

	CU_ASSERT_EQUAL_FATAL(vn_many_begin(&m, "a", 0, &err), VN_OK);
	for (int i = 0; i < 6; i++)
		add_candidate(&m, "x", said[i]);
	CU_ASSERT_EQUAL_FATAL(vn_vote_count(&v, &m, path, digits, 4, false, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_many_odd(&v.many, 0), VN_MANY_ALL);
	CU_ASSERT_EQUAL(vn_many_status(&v.many), 1);
	vn_vote_finish(&v);
	vn_many_finish(&m);
}

static void who_cannot_be_compared_has_no_vote(void)
{
	vn_many  m;
	vn_vote  v;
	vn_error err = { "" };
	char    *path[] = { (char[]) { "a" }, (char[]) { "b" }, (char[]) { "c" }, (char[]) { "d" } };

	CU_ASSERT_EQUAL_FATAL(vn_many_begin(&m, "a", 0, &err), VN_OK);
	add_trouble(&m, "b");         /* 0-1 */
	add_candidate(&m, "c", ".."); /* 0-2 */
	add_candidate(&m, "d", ".x"); /* 0-3 */
	add_trouble(&m, "c");         /* 1-2 */
	add_trouble(&m, "d");         /* 1-3 */
	add_candidate(&m, "d", ".x"); /* 2-3 */
	CU_ASSERT_EQUAL_FATAL(vn_vote_count(&v, &m, path, digits, 4, false, &err), VN_OK);
	CU_ASSERT_EQUAL(v.many.candidate[0].status, 0);
	CU_ASSERT_EQUAL(v.many.candidate[1].status, 2);
	CU_ASSERT_STRING_EQUAL(v.many.candidate[1].trouble, "it is damaged");
	CU_ASSERT_EQUAL(v.many.candidate[2].status, 0);
	CU_ASSERT_EQUAL(v.many.candidate[3].status, 1);
	CU_ASSERT_EQUAL(vn_many_odd(&v.many, 1), 3);
	vn_vote_finish(&v);
	vn_many_finish(&m);
}

static void several_candidates_have_no_junit(void)
{
	CU_ASSERT_PTR_NOT_NULL(vn_many_by_name("html"));
	CU_ASSERT_PTR_NULL(vn_many_by_name("junit"));
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(the_odd_one_out_is_the_only_one_outside),
		TEST(one_candidate_alone_is_no_odd_one),
		TEST(a_checkpoint_of_one_candidate_has_a_row_behind_the_others),
		TEST(what_another_process_found_is_the_same_here),
		TEST(what_a_killed_process_left_is_refused),
		TEST(two_that_agree_outvote_the_third),
		TEST(what_pairs_say_of_the_outvoted_is_said_of_it_alone),
		TEST(two_against_two_have_no_majority),
		TEST(who_cannot_be_compared_has_no_vote),
		TEST(several_candidates_have_no_junit),
		CU_TEST_INFO_NULL,
	};
	return run_suite("many", tests);
}
