/* test_part.c: tests compare/folders/part.c, the division of pairs among processes. */
#include "compare/folders/part.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

static const char *const variables[] = {
	"SLURM_ARRAY_TASK_ID",
	"SLURM_ARRAY_TASK_MIN",
	"SLURM_ARRAY_TASK_STEP",
	"SLURM_ARRAY_TASK_COUNT",
	"OMPI_COMM_WORLD_RANK",
	"OMPI_COMM_WORLD_SIZE",
	"PMI_RANK",
	"PMI_SIZE",
	"SLURM_PROCID",
	"SLURM_NTASKS",
	"JOB_COMPLETION_INDEX",
};

/* Sets these variables, "NAME=VALUE" each, and unsets all others of a scheduler. */
static void set_only(const char *const *assign, int n)
{
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
		unsetenv(variables[i]);
	for (int i = 0; i < n; i++) {
		char name[80];
		snprintf(name, sizeof name, "%s", assign[i]);
		char *value = strchr(name, '=');
		*value = 0;
		CU_ASSERT_EQUAL_FATAL(setenv(name, value + 1, 1), 0);
	}
}

static void parts_are_read(void)
{
	static const struct {
		const char *text;
		int         index, of;
	} row[] = {
		{ "1/1", 1, 1 },
		{ "2/7", 2, 7 },
		{ "7/7", 7, 7 },
		{ "100000/100000", 100000, 100000 },
		{ "0/7", 0, 0 },
		{ "8/7", 0, 0 },
		{ "1/0", 0, 0 },
		{ "1/100001", 0, 0 },
		{ "-1/7", 0, 0 },
		{ "1/7x", 0, 0 },
		{ "1/ 7", 0, 0 },
		{ "", 0, 0 },
		{ "/", 0, 0 },
		{ "/7", 0, 0 },
		{ "1/", 0, 0 },
		{ "1/2/3", 0, 0 },
		{ "9999999999/9999999999", 0, 0 },
		{ "4", 0, 0 },
	};

	set_only(NULL, 0);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		vn_folder_part part = { 0 };
		vn_error       err = { "" };
		CU_ASSERT_EQUAL(vn_folder_part_read(row[i].text, &part, &err), row[i].of ? VN_OK : VN_ERR_USAGE);
		if (row[i].of) {
			CU_ASSERT_EQUAL(part.index, row[i].index);
			CU_ASSERT_EQUAL(part.of, row[i].of);
		}
	}
}

static void a_scheduler_gives_the_number(void)
{
	static const struct {
		const char *set[4];
		int         n, index;
	} row[] = {
		/* index 0: refused */
		{ { "SLURM_PROCID=0", "SLURM_NTASKS=4" }, 2, 1 },
		{ { "SLURM_PROCID=3", "SLURM_NTASKS=4" }, 2, 4 },
		{ { "SLURM_PROCID=3", "SLURM_NTASKS=5" }, 2, 0 },
		{ { "SLURM_PROCID=4" }, 1, 0 },
		{ { "SLURM_PROCID=x" }, 1, 0 },
		{ { "SLURM_PROCID=" }, 1, 0 },
		{ { "JOB_COMPLETION_INDEX=2" }, 1, 3 },
		{ { "PMI_RANK=1", "PMI_SIZE=4" }, 2, 2 },
		{ { "OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=4", "SLURM_PROCID=0", "SLURM_NTASKS=1" }, 4, 3 },
		{ { "SLURM_ARRAY_TASK_ID=10", "SLURM_ARRAY_TASK_MIN=10", "SLURM_ARRAY_TASK_COUNT=4" }, 3, 1 },
		{ { "SLURM_ARRAY_TASK_ID=16", "SLURM_ARRAY_TASK_MIN=10", "SLURM_ARRAY_TASK_STEP=2",
		    "SLURM_ARRAY_TASK_COUNT=4" },
		  4,
		  4 },
		{ { "SLURM_ARRAY_TASK_ID=9", "SLURM_ARRAY_TASK_MIN=10" }, 2, 0 },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		vn_folder_part part = { 0 };
		vn_error       err = { "" };
		set_only(row[i].set, row[i].n);
		CU_ASSERT_EQUAL(vn_folder_part_read("4", &part, &err), row[i].index ? VN_OK : VN_ERR_USAGE);
		CU_ASSERT_EQUAL(row[i].index ? part.index : 0, row[i].index);
	}
	set_only(NULL, 0);
}

/* Each item has one part, whatever the number of parts, and no part has much
 * more than its share. */
static void every_item_is_dealt_once_and_evenly(void)
{
	enum { N = 101, MOST = 130 };
	int64_t bytes[N], whole = 0;
	bool    mine[N];
	int     order[N];

	for (int i = 0; i < N; i++)
		whole += bytes[i] = i % 10 == 3 ? 0 : 1000 + i * 37 % 501;
	for (int of = 1; of <= MOST; of++) {
		int     owners[N] = { 0 };
		int64_t most = 0;
		for (int index = 1; index <= of; index++) {
			int64_t load = 0;
			vn_folder_part_deal(bytes, N, (vn_folder_part) { index, of }, mine, order);
			for (int i = 0; i < N; i++) {
				owners[i] += mine[i];
				load += mine[i] ? bytes[i] : 0;
			}
			most = load > most ? load : most;
		}
		for (int i = 0; i < N; i++)
			CU_ASSERT_EQUAL(owners[i], 1);
		CU_ASSERT_TRUE(most <= whole / of + 1501);
	}
	vn_folder_part_deal(bytes, N, (vn_folder_part) { 0, 0 }, mine, order);
	for (int i = 0; i < N; i++)
		CU_ASSERT_TRUE(mine[i]);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(parts_are_read),
		TEST(a_scheduler_gives_the_number),
		TEST(every_item_is_dealt_once_and_evenly),
		CU_TEST_INFO_NULL,
	};
	return run_suite("part", tests);
}
