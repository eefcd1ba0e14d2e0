/* test_vernier_capture.c: the public recorders, in processes forked from the one that records. */
#define VERNIER_RECORD_IMPLEMENTATION
#include "vernier_capture.h"
#include "vernier_record.h"

#include "capture/recording/recording.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_S = 20 };

static const int32_t ids[] = { 1, 2, 3 };
static const float   numbers[3][4];
static const int64_t shape[] = { 3, 4 };
static char          folder[] = "/tmp/vn-forked-XXXXXX";

static bool put(vernier_capture *c, int step)
{
	return vernier_capture_step(c, ids, 3) == 0 &&
	       vernier_capture_put(c, "embed", "token hidden", "f32", numbers, 2, shape) == 0 && step >= 0;
}

/* Waits for a child, but not for ever; returns its exit status, or -1. */
static int end_of(pid_t child)
{
	int status;
	for (int i = 0; i < PATIENCE_S * 100; i++) {
		if (waitpid(child, &status, WNOHANG) == child)
			return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
		usleep(10000);
	}
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	return -1;
}

static int tensors_of(const char *path)
{
	vn_recording *r;
	vn_error      err;
	if (vn_recording_open(path, &r, &err))
		return -1;
	const int n = vn_recording_complete(r) ? vn_recording_count(r) : -2;
	vn_recording_close(r);
	return n;
}

/* A child cannot free what threads of its parent hold: a leak sanitizer asks before it looks. */
static bool in_child;
int         __lsan_is_turned_off(void);
int         __lsan_is_turned_off(void)
{
	return in_child;
}

/* What a child does with the parent's capture. */
typedef enum child_does { FREES, EXITS, WRITES, COMMITS, STAYS, CHILD_DOES } child_does;

static void be_child(vernier_capture *c, child_does what)
{
	in_child = true;
	switch (what) {
	case FREES: vernier_capture_free(c); break;
	case EXITS: exit(0);
	case WRITES:
		if (put(c, 1) || vernier_capture_say(c, "device", "x") == 0 || !strstr(vernier_capture_error(c), "forked"))
			_exit(3);
		vernier_capture_free(c);
		break;
	case COMMITS:
		if (vernier_capture_commit(c) == 0)
			_exit(3);
		vernier_capture_free(c);
		exit(0);
	case STAYS: pause(); break;
	case CHILD_DOES: break;
	}
	_exit(0);
}

static void a_child_leaves_the_file_to_its_parent(void)
{
	for (child_does what = FREES; what < CHILD_DOES; what++) {
		vernier_capture *c = vernier_capture_open("c.h5", 1, "forked", "f32");
		CU_ASSERT_FATAL(c && put(c, 0));
		const pid_t child = fork();
		CU_ASSERT_FATAL(child >= 0);
		if (child == 0)
			be_child(c, what);
		if (what != STAYS)
			CU_ASSERT_EQUAL(end_of(child), 0);
		alarm(PATIENCE_S); /* a parent must not wait for a child that goes on */
		CU_ASSERT_TRUE(put(c, 1));
		CU_ASSERT_EQUAL(vernier_capture_commit(c), 0);
		vernier_capture_free(c);
		alarm(0);
		CU_ASSERT_EQUAL(tensors_of("c.h5"), 2);
		if (what == STAYS) { /* nor does its copy of the lock hinder the next recording */
			alarm(PATIENCE_S);
			c = vernier_capture_open("given-up.h5", 1, "forked", "f32");
			CU_ASSERT_TRUE(put(c, 0));
			const pid_t other = fork();
			if (other == 0)
				be_child(c, STAYS);
			vernier_capture_free(c);
			c = vernier_capture_open("given-up.h5", 1, "forked", "f32");
			CU_ASSERT_TRUE(put(c, 0));
			CU_ASSERT_EQUAL(vernier_capture_commit(c), 0);
			vernier_capture_free(c);
			alarm(0);
			kill(child, SIGKILL);
			kill(other, SIGKILL);
			end_of(child);
			end_of(other);
		}
	}
}

static void a_child_lists_nothing_in_the_manifest(void)
{
	for (int ends = 0; ends < 2; ends++) {
		char           dump[] = "dump0", path[64], text[4096] = "";
		vernier_record r;
		dump[4] = (char)('0' + ends);
		CU_ASSERT_EQUAL_FATAL(vernier_record_open(&r, dump, "forked", "f32"), 0);
		CU_ASSERT_EQUAL(vernier_record_step(&r, ids, 3), 0);
		CU_ASSERT_EQUAL(vernier_record_put(&r, "embed", "token hidden", "f32", numbers, 2, shape), 0);
		const pid_t child = fork();
		CU_ASSERT_FATAL(child >= 0);
		if (child == 0) {
			if (vernier_record_put(&r, "logits", NULL, "f32", numbers, 2, shape) == 0)
				_exit(3);
			if (ends)
				exit(vernier_record_close(&r) == 0 ? 3 : 0);
			vernier_record_abandon(&r);
			exit(0);
		}
		CU_ASSERT_EQUAL(end_of(child), 0);
		CU_ASSERT_EQUAL(vernier_record_put(&r, "final_norm", NULL, "f32", numbers, 2, shape), 0);
		CU_ASSERT_EQUAL(vernier_record_close(&r), 0);
		snprintf(path, sizeof path, "%s/manifest.jsonl", dump);
		FILE *f = fopen(path, "r");
		CU_ASSERT_FATAL(f != NULL);
		text[fread(text, 1, sizeof text - 1, f)] = '\0';
		fclose(f);
		CU_ASSERT_PTR_NULL(strstr(text, "logits"));
		const char *end = strstr(text, "{\"complete\":2}\n");
		CU_ASSERT_TRUE(end && !end[strlen("{\"complete\":2}\n")]);
	}
}

static void a_pipe_in_place_of_a_file_is_not_waited_for(void)
{
	vernier_record r;
	alarm(PATIENCE_S);
	CU_ASSERT_EQUAL_FATAL(mkdir("pipes", 0700), 0);
	CU_ASSERT_EQUAL_FATAL(mkfifo("pipes/manifest.jsonl", 0600), 0);
	CU_ASSERT_EQUAL(vernier_record_open(&r, "pipes", "forked", "f32"), -1);
	CU_ASSERT_EQUAL_FATAL(mkfifo("piped.h5", 0600), 0);
	vernier_capture *c = vernier_capture_open("piped.h5", 1, "forked", "f32");
	CU_ASSERT_FALSE(put(c, 0));
	vernier_capture_free(c);
	alarm(0);
}

static void a_refusal_names_the_argument_not_an_option(void)
{
	FILE *f = fopen("exists.h5", "w");
	CU_ASSERT_FATAL(f && fputs("no recording", f) >= 0 && fclose(f) == 0);
	for (int replace = 0; replace < 2; replace++) {
		vernier_capture *c = vernier_capture_open("exists.h5", replace, "forked", "f32");
		CU_ASSERT_PTR_NOT_NULL(strstr(vernier_capture_error(c), replace ? "; replace replaces only recordings"
		                                                                : "exists already; replace replaces it"));
		vernier_capture_free(c);
	}
}

static void a_refused_recording_fails_no_other(void)
{
	vernier_capture *a = vernier_capture_open("whole.h5", 1, "forked", "f32");
	CU_ASSERT_TRUE(put(a, 0));
	vernier_capture *b = vernier_capture_open("whole.h5", 1, "forked", "f32");
	CU_ASSERT_PTR_NOT_NULL(strstr(vernier_capture_error(b), "is writing it"));
	vernier_capture_free(b);
	CU_ASSERT_EQUAL(vernier_capture_commit(a), 0);
	vernier_capture_free(a);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_child_leaves_the_file_to_its_parent),       TEST(a_child_lists_nothing_in_the_manifest),
		TEST(a_pipe_in_place_of_a_file_is_not_waited_for), TEST(a_refusal_names_the_argument_not_an_option),
		TEST(a_refused_recording_fails_no_other),          CU_TEST_INFO_NULL,
	};
	if (!mkdtemp(folder) || chdir(folder) != 0)
		return 1;
	setvbuf(stdout, NULL, _IONBF, 0); /* children that exit must not print the parent's lines again */
	const int bad = run_suite("vernier_capture", tests);
	char      remove_it[64];
	snprintf(remove_it, sizeof remove_it, "rm -r %s", folder);
	if (chdir("/") != 0 || system(remove_it) != 0)
		return 1;
	return bad;
}
