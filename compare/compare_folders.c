/* compare_folders.c: folders of recordings, paired by name, compared by one process or
 * shared by several. */
#include "compare/compare_line.h"

#include "compare/many/many.h"
#include "compare/match/folders.h"
#include "compare/metrics/team.h"
#include "capture/base/shipped.h"
#include "capture/file/output.h"
#include "capture/names/name_map.h"
#include "capture/recording/identity.h"

#include "libref/base/alloc.h"
#include "libref/base/crew.h"
#include "libref/base/intern.h"
#include "libref/base/map.h"
#include "libref/base/say.h"
#include "libref/base/text.h"
#include "libref/base/trouble.h"
#include "libref/base/worker.h"
#include "libref/model/model.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* The command for one pair: each path that is a folder gets the file name appended. */
static bool command_of(const vn_compare_line *k, const char *name, char (*room)[PATH_MAX], vn_compare_line *one)
{
	const char **path[] = { &one->ref, &one->cand, &one->floor, &one->replayed };
	*one = *k;
	for (size_t i = 0; i < sizeof path / sizeof *path; i++)
		if (*path[i]) {
			if (snprintf(room[i], PATH_MAX, "%s/%s", *path[i], name) >= PATH_MAX)
				return false;
			*path[i] = room[i];
		}
	if (k->how.o.baseline && !vn_folder_report(k->how.o.baseline, name, room[4 + VN_COMPARE_REPORTS]))
		return false;
	one->how.o.baseline = k->how.o.baseline ? room[4 + VN_COMPARE_REPORTS] : NULL;
	for (int i = 0; i < k->n_reports; i++)
		if (k->report[i].path) {
			if (!vn_folder_report(k->report[i].path, name, room[4 + i]))
				return false;
			one->report[i].path = room[4 + i];
		}
	return true;
}

static int count_candidates(const vn_compare_line *k)
{
	return k->many ? k->n_many : 1;
}

static const char *candidate_folder(const vn_compare_line *k, int i)
{
	return k->many ? k->many[i] : k->cand;
}

/* Do the reference's folder and a candidate's folder have the pair's file? */
static bool can_compare(const vn_compare_line *k, const vn_folder_pair *p)
{
	for (int i = 0; i < count_candidates(k); i++)
		if (p->there[0] && p->there[i + 1])
			return true;
	return false;
}

/* Judges a recording that only the reference or only candidate i has. It passes if the limits allow
 * it and no warning fails it. */
static vn_status judge_one_sided(const vn_compare_line *k, const vn_folder_pair *p, int i, int *status, vn_error *err)
{
	vn_compare_line                            one = *k;
	VN_ENDS(vn_comparison_close) vn_comparison c = { .opened.request.options = &k->how.o };
	char                                       ref[PATH_MAX], cand[PATH_MAX], chosen[128];
	vn_status                                  st;

	*status = 2;
	if (snprintf(ref, sizeof ref, "%s/%s", k->ref, p->name) >= PATH_MAX ||
	    snprintf(cand, sizeof cand, "%s/%s", k->many[i], p->name) >= PATH_MAX)
		return vn_fail(err, VN_ERR_USAGE, "%s: the path is too long", p->name);
	one.ref = ref;
	one.cand = cand;
	one.absent = p->there[0] ? VN_NO_CANDIDATE : VN_NO_REFERENCE;
	if (!(st = vn_compare_judge(&one, &c, chosen, sizeof chosen, err)))
		*status = !c.result.verdict.within;
	return st;
}

/* Judges a name that only the reference's folder has, or that it lacks, with several candidates. */
static vn_together_pair judge_absent(const vn_compare_line *k, const vn_folder_pair *p)
{
	const bool       extra = !p->there[0];
	vn_together_pair o = { .status = 0 };
	char             words[2 * VN_MOST_FOLDERS + 80];
	int              status = 0;

	snprintf(words, sizeof words, extra ? "only in" : "only in the reference");
	for (int i = 0, n = 0; i < k->n_many; i++) {
		vn_error  err;
		vn_status st = VN_OK;
		if (p->there[i + 1])
			vn_text_add(words, sizeof words, "%s %c", n++ ? "," : "", vn_many_letter(i));
		if (p->there[i + 1] == extra && (extra || i == 0) && (st = judge_one_sided(k, p, i, &status, &err)))
			vn_say(stderr, "vernier %s: %s\n", k->name, err.text);
		o.again = o.again || st == VN_ERR_NOMEM || st == VN_ERR_INTERRUPTED;
		o.each[i] = p->there[i + 1] == extra ? (char)('0' + status) : '-';
		if (p->there[i + 1] == extra && status > o.status)
			o.status = status;
	}
	vn_text_add(words, sizeof words, "%s", o.status == 0 ? " (allowed)" : o.status == 2 ? ": not compared" : "");
	o.words = vn_alloc_check(vn_intern(words));
	return o;
}

static vn_together_pair path_too_long(const vn_compare_line *k, const vn_folder_pair *p)
{
	vn_together_pair o = { .status = 2, .words = "" };

	vn_say(stderr, "vernier %s: %s: the path is too long\n", k->name, p->name);
	memset(o.each, '2', k->many ? (size_t)k->n_many : 0);
	return o;
}

/* Compares all candidates that have the pair's file with the reference, in one report. */
static vn_together_pair compare_several(vn_compare_line *one, const vn_folder_pair *p)
{
	static char path[VN_MANY_MOST][PATH_MAX];
	char       *many[VN_MANY_MOST];

	one->gone = 0;
	for (int i = 0; i < one->n_many; i++) {
		if (snprintf(path[i], PATH_MAX, "%s/%s", one->many[i], p->name) >= PATH_MAX)
			return path_too_long(one, p);
		many[i] = path[i];
		one->gone |= p->there[i + 1] ? 0U : 1U << i;
	}
	one->many = many;
	return vn_compare_many(one);
}

static vn_together_pair compare_pair(const vn_compare_line *k, const vn_folder_pair *p)
{
	static char     room[5 + VN_COMPARE_REPORTS][PATH_MAX];
	vn_compare_line one;
	if (!k->quiet && can_compare(k, p))
		vn_say(stdout, "== %s\n", p->name);
	fflush(stdout); /* keeps stdout before stderr */
	if (k->many && !can_compare(k, p))
		return judge_absent(k, p);
	if (!command_of(k, p->name, room, &one))
		return path_too_long(k, p);
	one.absent = !p->there[0] ? VN_NO_REFERENCE : !p->there[1] ? VN_NO_CANDIDATE : VN_NONE_ABSENT;
	return k->many ? compare_several(&one, p) : vn_compare_pair(&one);
}

static void say_verdict_option(void *asked, const vn_option *o, const char *value)
{
	if (o->changes_verdict)
		fprintf(asked, "--%s %zu:%s\n", o->name, value ? strlen(value) : 0, value ? value : "");
}

/* What name maps say today. One that cannot be read is refused with each pair. */
static void say_maps(FILE *asked, const char *const *name, int n)
{
	for (int i = 0; i < n; i++) {
		vn_name_map   *map = NULL;
		VN_FREED char *text = NULL;
		size_t         bytes = 0;
		if (!vn_name_map_open(name[i], &map, NULL) && !vn_read_text(map->path, 1 << 24, &text, &bytes, NULL))
			fprintf(asked, "%s\n", vn_digest_of(text, bytes).hex);
		vn_name_map_destroy(map);
	}
}

/* What the limits say today that the recordings choose among. */
static void say_shipped(FILE *asked)
{
	char name[4096], path[PATH_MAX];

	if (vn_shipped_names("limits", "", name, sizeof name, NULL))
		return;
	for (char *one = strtok(name, "|"); one; one = strtok(NULL, "|")) {
		char  *text = NULL;
		size_t bytes = 0;
		if (!vn_shipped_find("limits", one, path, NULL) && !vn_read_text(path, 1 << 24, &text, &bytes, NULL))
			fprintf(asked, "%s %s\n", one, vn_digest_of(text, bytes).hex);
		free(text);
	}
}

/* Files that must not change before the last pair is compared. */
typedef struct input_files {
	const char **path; /* (n), interned */
	size_t       n;
} input_files;

static void add_file(input_files *file, const char *path)
{
	if (file->n && strcmp(file->path[file->n - 1], path) == 0)
		return;
	file->path = vn_alloc_grown(file->path, file->n, sizeof *file->path);
	file->path[file->n++] = vn_alloc_check(vn_intern(path));
}

/* Joined parts are one comparison, and give the summary of one process. */
static bool is_shared(const vn_compare_line *k)
{
	return k->summary || vn_cluster_size() > 1;
}

/* What the model says today, and lists its files. If shared, its weights too. A model that cannot
 * be opened is refused with each pair. */
static void say_model(FILE *asked, const vn_compare_line *k, input_files *file)
{
	vn_source *s = NULL;
	vn_model  *m = NULL;

	if (!k->how.o.model || vn_source_open(k->how.o.model, &s, NULL))
		return;
	fprintf(asked, "%s\n", vn_digest_of(s->config, s->config_bytes).hex);
	add_file(file, s->config_path);
	for (size_t i = 0; i < s->n; i++)
		add_file(file, s->tensor[i].path);
	vn_source_close(s);
	if (!is_shared(k) || vn_model_open_as(k->how.o.model, VN_MODEL_MAPPED, &m, NULL))
		return;
	const int      n = vn_model_plan(m)->n_weights;
	vn_weight_row *row = vn_alloc_zero((size_t)n, sizeof *row);
	vn_model_digests(m, k->how.o.threads, row);
	for (int i = 0; i < n; i++)
		fprintf(asked, "%s %s\n", row[i].name, row[i].digest.hex);
	free(row);
	vn_model_close(m);
}

static void say_input(vn_digester *saw, const char *path, input_files *file)
{
	vn_digest d = { .hex = "" };

	if (!path)
		return;
	if (vn_recording_identity(path, &d, NULL))
		d = (vn_digest) { .hex = "unreadable" };
	vn_digester_add(saw, d.hex, sizeof d.hex);
	add_file(file, path);
}

/* What the files of all pairs hold, if shared, for merge, and lists them. */
static void see_inputs(const vn_compare_line *k, const vn_folder_pairs *p, input_files *file, vn_together *t)
{
	static char     room[5 + VN_COMPARE_REPORTS][PATH_MAX];
	vn_compare_line one;
	char            path[PATH_MAX];

	for (int i = 0; is_shared(k) && i < p->n; i++) {
		if (!command_of(k, p->pair[i].name, room, &one))
			continue;
		const char *const input[] = { one.ref, one.floor, one.replayed, one.how.o.baseline };
		vn_digester      *saw = vn_alloc_check(vn_digester_create());
		for (size_t j = 0; j < sizeof input / sizeof *input; j++)
			say_input(saw, input[j], file);
		for (int j = 0; j < count_candidates(k); j++)
			if (snprintf(path, sizeof path, "%s/%s", candidate_folder(k, j), p->pair[i].name) < PATH_MAX)
				say_input(saw, path, file);
		vn_together_saw(t, p->pair[i].name, vn_digester_finish(saw));
	}
}

/* Which files the names mean, and when they were last changed: reading them again would take too
 * long. */
static void say_files(FILE *out, const input_files *file)
{
	for (size_t i = 0; i < file->n; i++) {
		struct stat is = { 0 };
		if (stat(file->path[i], &is) == 0)
			fprintf(out, "%ju %ju %jd %jd.%09ld %jd.%09ld\n", (uintmax_t)is.st_dev, (uintmax_t)is.st_ino,
			        (intmax_t)is.st_size, (intmax_t)is.st_mtim.tv_sec, is.st_mtim.tv_nsec, (intmax_t)is.st_ctim.tv_sec,
			        is.st_ctim.tv_nsec);
	}
}

/* Every option on the command line that changes a verdict, and what limits and name maps say today
 * that all pairs are judged by. */
static void say_rules(FILE *out, const vn_compare_line *k)
{
	vn_limits *limits = NULL;

	vn_options_each(k->command, k, say_verdict_option, out);
	if (k->limits && !vn_limits_open(k->limits, &limits, NULL))
		fprintf(out, "%s\n", limits->digest.hex);
	vn_limits_destroy(limits);
	if (!k->limits)
		say_shipped(out);
	say_maps(out, k->sides.names, k->sides.n_names);
	say_maps(out, k->sides.ref_names, k->sides.n_ref_names);
}

/* What is compared, and what all pairs are judged by: parts made with another text are not joined.
 * Lists the files. Returns text to be freed. */
static char *say_asked(const vn_compare_line *k, input_files *file)
{
	vn_text_stream asked;
	FILE          *out = vn_alloc_stream(&asked);

	say_rules(out, k);
	say_model(out, k, file);
	return vn_alloc_streamed(&asked);
}

/* The same of this machine alone: another text later means that a file has changed. */
static char *say_state(const vn_compare_line *k, const input_files *file)
{
	vn_text_stream state;
	FILE          *out = vn_alloc_stream(&state);

	say_rules(out, k);
	say_files(out, file);
	return vn_alloc_streamed(&state);
}

/* Checks the report paths of all pairs before the first pair is compared. */
static vn_status check_report(const vn_report_form *form, const char *path, vn_error *err)
{
	if (!path)
		return form->write == vn_report_text
		           ? VN_OK
		           : vn_fail(err, VN_ERR_USAGE, "--format %s of folders writes several files: name them with -o",
		                     form->name);
	const size_t n = strlen(path);
	if (path[n - 1] == '/' || vn_match_is_folder(path))
		return vn_fail(err, VN_ERR_USAGE,
		               "-o %s: give the name of a file, from which those of all pairs are made: -o %s%sreport.html "
		               "writes report.NAME.html for each",
		               path, path, path[n - 1] == '/' ? "" : "/");
	return vn_place_check_folder(path, err);
}

/* Checks what is given for folders. */
static vn_status check_folders(const vn_compare_line *k, vn_error *err)
{
	for (int i = 0; i < k->n_reports; i++) {
		const vn_status st = check_report(k->report[i].form, k->report[i].path, err);
		if (st)
			return st;
	}
	if (k->floor && !vn_match_is_folder(k->floor))
		return vn_fail(err, VN_ERR_USAGE,
		               "--floor %s: for folders of recordings, give a folder of floors with the same file names",
		               k->floor);
	if (k->replayed && !vn_match_is_folder(k->replayed))
		return vn_fail(err, VN_ERR_USAGE,
		               "--replayed %s: for folders of recordings, give a folder of replay files with the same file "
		               "names",
		               k->replayed);
	for (int i = 0; i < count_candidates(k) && !(k->how.o.allow & VN_ALLOW_ITSELF); i++) {
		if (vn_same_file(k->ref, candidate_folder(k, i)))
			return vn_fail(err, VN_ERR_USAGE,
			               "%s is the same folder as the reference, %s: recordings always agree with "
			               "themselves (--allow itself compares them all the same)",
			               candidate_folder(k, i), k->ref);
		for (int j = 0; j < i; j++)
			if (vn_same_file(candidate_folder(k, j), candidate_folder(k, i)))
				return vn_fail(err, VN_ERR_USAGE, "%s is given twice, as candidates %c and %c", candidate_folder(k, i),
				               vn_many_letter(j), vn_many_letter(i));
	}
	return k->summary ? vn_place_check(k->summary, VN_PLACE_REPORT, k->force, err) : VN_OK;
}

/* The pairs of folders, which several processes may share, and their outcome. */
typedef struct shared {
	const vn_compare_line *k;
	const vn_folder_pairs *p;
	const int             *pair; /* (n) those to compare, by name */
	int                    n;
	vn_together           *t;
	bool                  *transient;
	_Atomic int           *spare; /* threads, in memory of all processes of a crew (vn_team_among); or NULL */
} shared;

static void compare_piece(void *context, int i, vn_cluster_answer *a)
{
	const shared *s = context;

	if (s->spare)
		--*s->spare;
	const vn_folder_pair *p = &s->p->pair[s->pair[i]];
	vn_together_pair      o = compare_pair(s->k, p);
	if (s->spare)
		++*s->spare;
	o.name = p->name;
	for (int side = 0; side <= count_candidates(s->k); side++)
		o.there |= p->there[side] ? 1U << side : 0;
	a->status = o.again;
	a->text[VN_CLUSTER_WORDS] = vn_together_pack(s->t, &o);
}

static const char *name_piece(void *context, int i)
{
	const shared *s = context;
	return s->p->pair[s->pair[i]].name;
}

/* Adds the outcome of a pair. */
static vn_status add_answer(void *context, int i, vn_cluster_answer *a, vn_error *err)
{
	const shared *s = context;

	*s->transient = *s->transient || a->status;
	return vn_together_add(s->t, name_piece(context, i), a->text[VN_CLUSTER_WORDS], err);
}

/* How many processes compare pairs at the same time. A model is loaded once only. */
static int count_workers(const vn_compare_line *k, int threads, int n)
{
	return k->how.o.model ? 1 : threads < n ? threads : n;
}

/* Compares the pairs in processes of their own, several at a time, whose threads they share. */
static vn_status divide_pairs(shared *s, const vn_cluster_job *job, vn_error *err)
{
	const int  threads = s->k->how.o.threads ? s->k->how.o.threads : vn_team_size();
	const int  workers = count_workers(s->k, threads, s->n);
	void      *page = mmap(NULL, sizeof *s->spare, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const bool shares = workers > 1 && page != MAP_FAILED;

	if (shares) {
		s->spare = page;
		*s->spare = threads;
		vn_team_among(s->spare);
		vn_colours(VN_COLOUR_AUTO); /* asks this process's stdout, before workers replace it */
	}
	const vn_status st = vn_crew_share(job, shares ? workers : 1, err);
	vn_team_among(NULL);
	if (page != MAP_FAILED)
		munmap(page, sizeof *s->spare);
	s->spare = NULL;
	return st;
}

/* Compares the pairs of this part. *first: the outcome is complete; false in a process that only
 * helped the first of several. *transient: a pair was not compared because memory ran out, or was
 * interrupted. */
static vn_status compare_pairs(const vn_compare_line *k, const char *const *side, const vn_folder_pairs *p,
                               vn_together *t, bool *first, bool *transient, vn_error *err)
{
	input_files    file = { 0 };
	VN_FREED char *asked = say_asked(k, &file);
	VN_FREED bool *mine = vn_alloc_zero((size_t)p->n, sizeof *mine);
	VN_FREED int *order = vn_alloc_zero((size_t)p->n, sizeof *order), *pair = vn_alloc_zero((size_t)p->n, sizeof *pair);
	shared        s = { .k = k, .p = p, .pair = pair, .t = t, .transient = transient };
	vn_status     st = vn_together_begin(t, side, count_candidates(k) + 1, p, k->part, asked, mine, order, err);

	if (!st)
		see_inputs(k, p, &file, t);
	VN_FREED char  *state = say_state(k, &file);
	const vn_digest same = vn_together_same(t);
	for (int i = 0; !st && i < p->n; i++)
		if (mine[i])
			pair[s.n++] = i;
	const vn_cluster_job job = {
		.command = k->name,
		.instead = "give each its part, with --part N --summary FILE, and join them with vernier merge",
		.n = s.n,
		.order = order,
		.same = same.hex,
		.piece = compare_piece,
		.done = add_answer,
		.name = name_piece,
		.context = &s,
	};
	if (!st && !k->part.of && vn_cluster_size() > 1)
		st = vn_cluster_share(&job, first, err);
	else if (!st)
		st = divide_pairs(&s, &job, err);
	VN_FREED char *now = st ? NULL : say_state(k, &file); /* each rank has its own files */
	free(file.path);
	if (now && strcmp(now, state) != 0)
		st = vn_fail(
			err, VN_ERR_IO,
			"limits, a name map, the model or a recording changed while the folders were compared: compare again");
	return st;
}

/* A pair that lacked memory, or whose report could not be printed, is to be compared again; a
 * summary would say that its files are at fault. mark: vn_trouble_mark before the first pair. */
static vn_status write_summary(const vn_compare_line *k, const vn_together *t, unsigned mark, bool transient,
                               vn_error *err)
{
	vn_output out;
	vn_status st = vn_trouble_since(mark, k->summary, err);

	if (st)
		return st;
	if (transient || ferror(stdout))
		return vn_fail(err, VN_ERR_IO, "%s: not written: %s", k->summary,
		               transient ? "a pair could not be compared for lack of memory"
		                         : "standard output cannot be written");
	if (!(st = vn_output_open(&out, k->summary, VN_PLACE_REPORT, k->force, err)))
		st = vn_output_close(&out, vn_together_json(t, out.file, err), err);
	return st;
}

static vn_status have_a_pair(const vn_compare_line *k, const vn_folder_pairs *p, vn_error *err)
{
	for (int i = 0; i < p->n; i++)
		if (can_compare(k, &p->pair[i]))
			return VN_OK;
	return vn_fail(err, VN_ERR_MISMATCH, "%s and %s have no recording with the same name", k->ref,
	               k->many ? "the candidates' folders" : k->cand);
}

/* The summary is written after all pairs: it must not take the place of the report of one, or of
 * what one reads. */
static vn_status check_summary(const vn_compare_line *k, const vn_folder_pairs *p, vn_error *err)
{
	static char     room[5 + VN_COMPARE_REPORTS][PATH_MAX];
	vn_compare_line one;

	for (int i = 0; k->summary && i < p->n; i++) {
		if (!command_of(k, p->pair[i].name, room, &one))
			continue;
		for (int j = 0; j < k->n_reports; j++)
			if (one.report[j].path && vn_same_place(k->summary, one.report[j].path))
				return vn_fail(err, VN_ERR_USAGE, "--summary %s: is the report of %s; give it another name", k->summary,
				               p->pair[i].name);
		if (one.how.o.baseline && vn_same_file(k->summary, one.how.o.baseline))
			return vn_fail(err, VN_ERR_USAGE, "--summary %s: is the baseline of %s; give it another name", k->summary,
			               p->pair[i].name);
	}
	return VN_OK;
}

int vn_compare_folders(const vn_compare_line *k)
{
	const char     *side[VN_MOST_FOLDERS] = { k->ref };
	vn_folder_pairs p = { 0 };
	vn_together     t = { .sides = 0 };
	vn_error        err = { "" };
	const unsigned  mark = vn_trouble_mark();
	vn_status       st = check_folders(k, &err);
	bool            transient = false, first = true;

	for (int i = 0; i < count_candidates(k); i++)
		side[i + 1] = candidate_folder(k, i);
	if (!st && !(st = vn_folder_pairs_of(side, count_candidates(k) + 1, &p, &err)) &&
	    !(st = check_summary(k, &p, &err)) && !(st = compare_pairs(k, side, &p, &t, &first, &transient, &err)) &&
	    first) {
		if (!k->quiet)
			vn_together_text(&t, stdout);
		if (!(st = have_a_pair(k, &p, &err)) && k->summary)
			st = write_summary(k, &t, mark, transient, &err);
	}
	const int worst = vn_together_status(&t);
	vn_together_free(&t);
	vn_folder_pairs_free(&p);
	if (st)
		vn_say(stderr, "vernier %s: %s\n", k->name, err.text);
	return st ? 2 : worst;
}
