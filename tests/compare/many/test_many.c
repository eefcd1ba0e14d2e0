/* test_many.c: several candidates reduced to a row per checkpoint, and the vote. */
#include "compare/comparison/checkpoint.h"
#include "compare/many/many_report.h"
#include "compare/many/vote.h"
#include "tests/support/suite.h"

#include <math.h>
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

/* Reduces a candidate and adds it; as text, the head comes from another process. */
static void add_head(vn_many *m, const char *path, json_t *head, FILE *file)
{
	vn_error err = { "" };
	char    *text = vn_json_dump(head, JSON_COMPACT);

	json_decref(head);
	CU_ASSERT_EQUAL(vn_many_add(m, path, vn_json_parse(text, 0), file, &err), VN_OK);
	free(text);
}

static void add_candidate(vn_many *m, const char *path, const char *fails)
{
	vn_checkpoint     point[MOST];
	const vn_document doc = make_document(point, fails);
	vn_error          err = { "" };
	FILE             *file = vn_many_open(&err);
	json_t           *head = NULL;

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_EQUAL_FATAL(vn_many_reduce(&doc, 0, file, &head, &err), VN_OK);
	add_head(m, path, head, file);
}

static void add_trouble(vn_many *m, const char *path)
{
	const vn_lines none = { 0 };
	vn_error       err = { "" }, why = { "it is damaged" };
	json_t        *head = NULL;

	CU_ASSERT_EQUAL_FATAL(vn_many_trouble(VN_ERR_FORMAT, &why, &none, &head, &err), VN_OK);
	add_head(m, path, head, NULL);
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
	vn_many m;
	char    text[VN_MANY_LETTERS];

	m = (vn_many) { .ref = "ref.h5" };
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
	vn_many m;

	m = (vn_many) { .ref = "ref.h5" };
	add_candidate(&m, "a", ".x");
	add_trouble(&m, "b");
	CU_ASSERT_EQUAL(vn_many_odd(&m, 1), VN_MANY_SEVERAL);
	CU_ASSERT_EQUAL(vn_many_status(&m), 2);
	CU_ASSERT_PTR_NULL(vn_many_cell_of(&m, 1, 1));
	vn_many_finish(&m);
}

static void a_checkpoint_of_one_candidate_has_a_row_behind_the_others(void)
{
	vn_many m;

	m = (vn_many) { .ref = "ref.h5" };
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

static void numbers_are_those_of_the_document(void)
{
	static const double value[] = { 1.0 / 3, INFINITY, -INFINITY, NAN };
	vn_many             m = { .ref = "ref.h5" };
	vn_error            err = { "" };
	vn_checkpoint       point[MOST];
	vn_document         doc = make_document(point, ".x");
	FILE               *file = vn_many_open(&err);
	json_t             *head = NULL;

	point[0].name = "\xff\n";
	point[0].m = (vn_measured) { .n = 4, .finite = 4, .has = { [VN_M_NMSE] = true, [VN_M_MAX_ABS] = true } };
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	for (int i = 0; i < 4; i++) {
		point[0].m.value[VN_M_NMSE] = value[i];
		point[0].m.value[VN_M_MAX_ABS] = value[3 - i];
		CU_ASSERT_EQUAL_FATAL(vn_many_reduce(&doc, 0, file, &head, &err), VN_OK);
		add_head(&m, "a", head, file);
		const vn_many_cell *x = vn_many_cell_of(&m, 0, i);
		CU_ASSERT(x->measured && !x->fails && x->status == VN_WITHIN);
		CU_ASSERT(x->nmse == value[i] || (isnan(x->nmse) && isnan(value[i])));
		CU_ASSERT(x->max_abs == value[3 - i] || (isnan(x->max_abs) && isnan(value[3 - i])));
		CU_ASSERT(isnan(x->over_floor));
		CU_ASSERT(!vn_many_cell_of(&m, 1, i)->measured && vn_many_cell_of(&m, 1, i)->fails);
		file = vn_many_open(&err);
	}
	CU_ASSERT_EQUAL(m.n_rows, 2);
	CU_ASSERT_STRING_EQUAL(m.row[0].label, "\\xff\\n");
	CU_ASSERT_EQUAL(m.candidate[3].first, 1);
	fclose(file);
	vn_many_finish(&m);
}

static void a_file_that_was_cut_is_refused(void)
{
	vn_many           m = { .ref = "ref.h5" };
	vn_checkpoint     point[MOST];
	const vn_document doc = make_document(point, ".x..");
	vn_error          err = { "" };
	FILE             *file = vn_many_open(&err);
	json_t           *head = NULL;

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_EQUAL_FATAL(vn_many_reduce(&doc, 0, file, &head, &err), VN_OK);
	CU_ASSERT_EQUAL(ftruncate(fileno(file), ftell(file) - 1), 0);
	CU_ASSERT_EQUAL(vn_many_add(&m, "b", head, file, &err), VN_ERR_IO);
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

	m = (vn_many) { .ref = "a" };
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
		m = (vn_many) { .ref = "a.h5" };
		add_candidate(&m, path[1], "xx");
		add_candidate(&m, path[2], "xx");
		add_candidate(&m, path[2], "..");
		for (int i = 0; i < 2; i++) {
			json_object_set_new(m.candidate[i].head, "warnings", json_pack("[s]", "the reference is wrong"));
			json_object_set_new(
				m.candidate[i].head, "next",
				json_pack("[s]", i ? "vernier explain a.h5 c.h5 --model m" : "vernier explain a.h5 b.h5 --model m"));
		}
		CU_ASSERT_EQUAL_FATAL(vn_vote_count(&v, &m, path, formats, 3, true, &err), VN_OK);
		CU_ASSERT_EQUAL(v.many.elected, 1);
		CU_ASSERT_EQUAL(v.many.candidate[0].status, 1);
		CU_ASSERT_EQUAL(v.many.candidate[1].status, 0);
		CU_ASSERT_EQUAL(v.many.candidate[2].status, 0);
		const json_t *warnings = vn_many_list(&v.many.candidate[0], "warnings"),
					 *next = vn_many_list(&v.many.candidate[0], "next");
		CU_ASSERT_EQUAL_FATAL(vn_document_lines(warnings), 1);
		CU_ASSERT_STRING_EQUAL(vn_document_line(warnings, 0), "A as the reference of B: the reference is wrong");
		CU_ASSERT_EQUAL_FATAL(vn_document_lines(next), !finer);
		if (!finer)
			CU_ASSERT_STRING_EQUAL(vn_document_line(next, 0), "vernier explain b.h5 a.h5 --model m");
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

	m = (vn_many) { .ref = "a" };
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

	m = (vn_many) { .ref = "a" };
	add_trouble(&m, "b");         /* 0-1 */
	add_candidate(&m, "c", ".."); /* 0-2 */
	add_candidate(&m, "d", ".x"); /* 0-3 */
	add_trouble(&m, "c");         /* 1-2 */
	add_trouble(&m, "d");         /* 1-3 */
	add_candidate(&m, "d", ".x"); /* 2-3 */
	CU_ASSERT_EQUAL_FATAL(vn_vote_count(&v, &m, path, digits, 4, false, &err), VN_OK);
	CU_ASSERT_EQUAL(v.many.candidate[0].status, 0);
	CU_ASSERT_EQUAL(v.many.candidate[1].status, 2);
	CU_ASSERT_STRING_EQUAL(vn_many_said(&v.many.candidate[1], "trouble"), "it is damaged");
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
		TEST(numbers_are_those_of_the_document),
		TEST(a_file_that_was_cut_is_refused),
		TEST(two_that_agree_outvote_the_third),
		TEST(what_pairs_say_of_the_outvoted_is_said_of_it_alone),
		TEST(two_against_two_have_no_majority),
		TEST(who_cannot_be_compared_has_no_vote),
		TEST(several_candidates_have_no_junit),
		CU_TEST_INFO_NULL,
	};
	return run_suite("many", tests);
}
