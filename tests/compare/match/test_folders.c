/* test_folders.c: tests compare/match/folders.c, the recordings of two folders
 * paired by file name. */
#include "compare/match/folders.h"
#include "compare/match/rank_files.h"
#include "tests/support/suite.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/vn-folders-XXXXXX";

static const char *at(const char *name)
{
	static char text[4][PATH_MAX];
	static int  next;
	char       *to = text[next++ % 4];
	snprintf(to, PATH_MAX, "%s/%s", dir, name);
	return to;
}

static void touch(const char *name)
{
	const int f = open(at(name), O_CREAT | O_WRONLY, 0600);
	CU_ASSERT_TRUE_FATAL(f >= 0);
	close(f);
}

static void make_folders(void)
{
	CU_ASSERT_EQUAL_FATAL(mkdir(at("a"), 0700), 0);
	CU_ASSERT_EQUAL_FATAL(mkdir(at("b"), 0700), 0);
}

/* In the order in which they were made, backwards. */
static void remove_all(const char *const *names, int n)
{
	for (int i = n - 1; i >= 0; i--)
		CU_ASSERT_EQUAL(remove(at(names[i])), 0);
	rmdir(at("a"));
	rmdir(at("b"));
}

static void recordings_are_paired_by_name_and_sorted(void)
{
	static const char *const names[] = { "a/z.h5", "a/m.hdf5", "b/m.hdf5", "b/c.h5", "b/z.h5" };
	static const struct {
		const char *name;
		bool        there[2];
	} want[] = {
		{ "c.h5", { false, true } },
		{ "m.hdf5", { true, true } },
		{ "z.h5", { true, true } },
	};
	vn_folder_pairs p;

	make_folders();
	for (int i = 0; i < 5; i++)
		touch(names[i]);
	CU_ASSERT_EQUAL(vn_folder_pairs_of((const char *[]) { at("a"), at("b") }, 2, &p, NULL), VN_OK);
	CU_ASSERT_EQUAL_FATAL(p.n, 3);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_STRING_EQUAL(p.pair[i].name, want[i].name);
		CU_ASSERT_EQUAL(p.pair[i].there[0], want[i].there[0]);
		CU_ASSERT_EQUAL(p.pair[i].there[1], want[i].there[1]);
	}
	vn_folder_pairs_free(&p);
	CU_ASSERT_PTR_NULL(p.pair);
	CU_ASSERT_EQUAL(p.n, 0);
	remove_all(names, 5);
}

static void one_side_alone_has_recordings(void)
{
	static const char *const names[] = { "a/x.h5" };
	vn_folder_pairs          p;

	make_folders();
	touch("a/x.h5");
	CU_ASSERT_EQUAL(vn_folder_pairs_of((const char *[]) { at("a"), at("b") }, 2, &p, NULL), VN_OK);
	CU_ASSERT_EQUAL_FATAL(p.n, 1);
	CU_ASSERT_TRUE(p.pair[0].there[0]);
	CU_ASSERT_FALSE(p.pair[0].there[1]);
	vn_folder_pairs_free(&p);
	remove_all(names, 1);
}

/* A dangling link and a folder that are named as recordings are, too: opening them
 * says what is wrong. */
static void the_name_alone_makes_a_recording(void)
{
	static const char *const names[] = { "a/gone.h5",  "a/dir.h5", "a/.hidden.h5", "a/.h5",     "a/h5",
		                                 "a/x.h5.bak", "a/X.H5",   "a/sub",        "b/note.txt" };
	vn_folder_pairs          p;

	make_folders();
	CU_ASSERT_EQUAL(symlink("nowhere", at(names[0])), 0);
	CU_ASSERT_EQUAL(mkdir(at(names[1]), 0700), 0);
	for (int i = 2; i < 7; i++)
		touch(names[i]);
	CU_ASSERT_EQUAL(mkdir(at(names[7]), 0700), 0);
	touch(names[8]);
	CU_ASSERT_EQUAL(vn_folder_pairs_of((const char *[]) { at("a"), at("b") }, 2, &p, NULL), VN_OK);
	CU_ASSERT_EQUAL_FATAL(p.n, 2);
	CU_ASSERT_STRING_EQUAL(p.pair[0].name, "dir.h5");
	CU_ASSERT_STRING_EQUAL(p.pair[1].name, "gone.h5");
	CU_ASSERT_EQUAL(p.folders[0], 1);
	CU_ASSERT_EQUAL(p.folders[1], 0);
	CU_ASSERT_EQUAL(p.others[0], 5);
	CU_ASSERT_EQUAL(p.others[1], 1);
	vn_folder_pairs_free(&p);
	remove_all(names, 9);
}

static void folders_without_a_recording_are_refused(void)
{
	static const char *const names[] = { "a/note.txt" };
	vn_folder_pairs          p;
	vn_error                 err = { "" };
	char                     want[3 * PATH_MAX];

	make_folders();
	touch(names[0]);
	CU_ASSERT_EQUAL(vn_folder_pairs_of((const char *[]) { at("a"), at("b") }, 2, &p, &err), VN_ERR_NOTFOUND);
	snprintf(want, sizeof want, "neither %s/a nor %s/b holds a recording (*.h5, *.hdf5)", dir, dir);
	CU_ASSERT_STRING_EQUAL(err.text, want);
	vn_folder_pairs_free(&p);
	CU_ASSERT_EQUAL(vn_folder_pairs_of((const char *[]) { at("a"), at("none") }, 2, &p, &err), VN_ERR_IO);
	snprintf(want, sizeof want, "%s/none: No such file or directory", dir);
	CU_ASSERT_STRING_EQUAL(err.text, want);
	vn_folder_pairs_free(&p);
	remove_all(names, 1);
}

/* A name as long as a file system has it. */
static void the_longest_name_is_kept_whole(void)
{
	char            name[2 + NAME_MAX + 1] = "a/";
	const char     *names[] = { name };
	vn_folder_pairs p;

	memset(name + 2, 'n', NAME_MAX);
	memcpy(name + 2 + NAME_MAX - 3, ".h5", 4);
	make_folders();
	touch(name);
	CU_ASSERT_EQUAL(vn_folder_pairs_of((const char *[]) { at("a"), at("b") }, 2, &p, NULL), VN_OK);
	CU_ASSERT_EQUAL_FATAL(p.n, 1);
	CU_ASSERT_STRING_EQUAL(p.pair[0].name, name + 2);
	vn_folder_pairs_free(&p);
	remove_all(names, 1);
}

static void expect_ranks(const char *argument, const char *const *want, int n)
{
	vn_rank_files ranks;

	CU_ASSERT_EQUAL(vn_rank_files_of(argument, &ranks, NULL), VN_OK);
	CU_ASSERT_EQUAL_FATAL(ranks.n, n);
	for (int i = 0; i < n; i++)
		CU_ASSERT_STRING_EQUAL(ranks.file[i], want[i]);
	vn_rank_files_free(&ranks);
}

static void ranks_are_those_of_a_folder_in_the_order_of_their_numbers_or_joined_by_commas(void)
{
	static const char *const names[] = { "a/r10.h5", "a/r2.h5", "a/r1.hdf5", "a/notes", "x,y" };
	vn_rank_files            ranks;
	vn_error                 err;

	make_folders();
	for (int i = 0; i < 5; i++)
		touch(names[i]);
	char with_slash[PATH_MAX];
	snprintf(with_slash, sizeof with_slash, "%s/a/", dir);
	char first[PATH_MAX], second[PATH_MAX], third[PATH_MAX];
	snprintf(first, sizeof first, "%s/a/r1.hdf5", dir);
	snprintf(second, sizeof second, "%s/a/r2.h5", dir);
	snprintf(third, sizeof third, "%s/a/r10.h5", dir);
	expect_ranks(at("a"), (const char *[]) { first, second, third }, 3);
	expect_ranks(with_slash, (const char *[]) { first, second, third }, 3);
	expect_ranks("p.h5,q,r", (const char *[]) { "p.h5", "q", "r" }, 3);
	expect_ranks("p.h5", (const char *[]) { "p.h5" }, 1);
	CU_ASSERT_FALSE(vn_rank_files_named("p.h5"));
	CU_ASSERT_TRUE(vn_rank_files_named("p.h5,q"));
	expect_ranks(at("x,y"), (const char *[]) { at("x,y") }, 1); /* a file of that name */
	CU_ASSERT_FALSE(vn_rank_files_named(at("x,y")));
	CU_ASSERT_EQUAL(vn_rank_files_of("p,,q", &ranks, &err), VN_ERR_USAGE);
	vn_rank_files_free(&ranks);
	CU_ASSERT_EQUAL(vn_rank_files_of("p,", &ranks, &err), VN_ERR_USAGE);
	vn_rank_files_free(&ranks);
	CU_ASSERT_EQUAL(vn_rank_files_of(at("b"), &ranks, &err), VN_ERR_NOTFOUND);
	vn_rank_files_free(&ranks);
	remove_all(names, 5);
}

static void recordings_of_several_folders_are_found_in_each(void)
{
	static const char *const names[] = { "a/p.h5", "b/p.h5", "b/q.h5" };
	vn_folder_pairs          p;

	make_folders();
	for (int i = 0; i < 3; i++)
		touch(names[i]);
	const char *folder[] = { at("b"), at("a"), at("b") };
	CU_ASSERT_EQUAL(vn_folder_pairs_of(folder, 3, &p, NULL), VN_OK);
	CU_ASSERT_EQUAL_FATAL(p.n, 2);
	for (int s = 0; s < 3; s++) {
		CU_ASSERT_TRUE(p.pair[0].there[s]);
		CU_ASSERT_EQUAL(p.pair[1].there[s], s != 1);
	}
	vn_folder_pairs_free(&p);
	remove_all(names, 3);
}

static void a_folder_is_told_from_a_file(void)
{
	touch("file");
	CU_ASSERT_TRUE(vn_match_is_folder(dir));
	CU_ASSERT_FALSE(vn_match_is_folder(at("file")));
	CU_ASSERT_FALSE(vn_match_is_folder(at("none")));
	CU_ASSERT_EQUAL(remove(at("file")), 0);
}

static void what_was_ignored_is_one_line(void)
{
	static const struct {
		int         folders, others;
		const char *line;
	} row[] = {
		{ 0, 0, "" },
		{ 1, 0, "ignored: 1 folder in D\n" },
		{ 0, 1, "ignored: 1 other file in D\n" },
		{ 2, 3, "ignored: 2 folders, 3 other files in D\n" },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		char  *text = NULL;
		size_t size;
		FILE  *out = open_memstream(&text, &size);
		CU_ASSERT_PTR_NOT_NULL_FATAL(out);
		vn_folder_left("D", row[i].folders, row[i].others, out);
		fclose(out);
		CU_ASSERT_STRING_EQUAL(text, row[i].line);
		free(text);
	}
}

static void each_recording_has_a_report_of_its_own(void)
{
	static const struct {
		const char *path, *name, *report;
	} row[] = {
		{ "out.json", "prompt1.h5", "out.prompt1.json" },
		{ "out.json", "prompt1.hdf5", "out.prompt1.hdf5.json" },
		{ "out.json", "prompt1.hdf5.h5", "out.prompt1.hdf5.h5.json" },
		{ "v1.2/out", "a.h5", "v1.2/out.a" }, /* the dot of a folder */
		{ "v1.2/out.html", "a.h5", "v1.2/out.a.html" },
		{ ".json", "a.h5", ".json.a" }, /* a hidden file has no suffix */
		{ "d/.json", "a.h5", "d/.json.a" },
		{ "out.json", ".h5", "out..h5.json" }, /* nothing would be left */
	};
	char text[PATH_MAX];

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		CU_ASSERT_TRUE(vn_folder_report(row[i].path, row[i].name, text));
		CU_ASSERT_STRING_EQUAL(text, row[i].report);
	}
}

static void a_report_that_does_not_fit_is_refused(void)
{
	char path[PATH_MAX], text[PATH_MAX];

	memset(path, 'p', sizeof path);
	path[PATH_MAX - 3] = 0; /* ".a" makes it the longest and the byte that ends it */
	CU_ASSERT_TRUE(vn_folder_report(path, "a.h5", text));
	CU_ASSERT_EQUAL(strlen(text), PATH_MAX - 1);
	path[PATH_MAX - 3] = 'p';
	path[PATH_MAX - 2] = 0;
	CU_ASSERT_FALSE(vn_folder_report(path, "a.h5", text));
}

static void numbers_in_names_can_count(void)
{
	char            name[][12] = { "rank10.h5", "rank2.h5", "rank1.h5" };
	vn_folder_pair  pair[] = { { .name = name[0] }, { .name = name[1] }, { .name = name[2] } };
	vn_folder_pairs p = { .pair = pair, .n = 3 };

	vn_folder_pairs_by_number(&p);
	CU_ASSERT_STRING_EQUAL(pair[0].name, "rank1.h5");
	CU_ASSERT_STRING_EQUAL(pair[1].name, "rank2.h5");
	CU_ASSERT_STRING_EQUAL(pair[2].name, "rank10.h5");
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(recordings_are_paired_by_name_and_sorted),
		TEST(one_side_alone_has_recordings),
		TEST(the_name_alone_makes_a_recording),
		TEST(folders_without_a_recording_are_refused),
		TEST(the_longest_name_is_kept_whole),
		TEST(ranks_are_those_of_a_folder_in_the_order_of_their_numbers_or_joined_by_commas),
		TEST(recordings_of_several_folders_are_found_in_each),
		TEST(a_folder_is_told_from_a_file),
		TEST(what_was_ignored_is_one_line),
		TEST(each_recording_has_a_report_of_its_own),
		TEST(a_report_that_does_not_fit_is_refused),
		TEST(numbers_in_names_can_count),
		CU_TEST_INFO_NULL,
	};

	if (!mkdtemp(dir))
		return 1;
	const int failed = run_suite("folders", tests);
	return rmdir(dir) != 0 || failed;
}
