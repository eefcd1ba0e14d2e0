/* compare_line.h: the command line of vernier compare and explain, and what it asks for: one pair
 * of recordings, several candidates, or two folders. Included only by cmd_compare.c,
 * cmd_table.c and compare_*.c. */
#pragma once

#include "compare/chapters/compare.h"
#include "compare/comparison/checkpoint.h"
#include "compare/folders/together.h"
#include "compare/match/rank_files.h"
#include "compare/match/sides.h"
#include "compare/options.h"
#include "compare/report/report.h"
#include "compare/result/words.h"
#include "libref/base/shell.h"

enum { VN_COMPARE_REPORTS = 8 };

typedef struct vn_compare_line {
	const char       *name;    /* compare, explain */
	const vn_command *command; /* its options; of vernier table: those of compare */
	const char       *ref, *cand, *limits, *floor, *replayed;
	char *const      *ranks; /* with --shard: cand and the files of the other ranks */
	char *const      *many;  /* several candidates, cand among them: files, folders, or sets of ranks; or NULL */
	int               n_many;
	int               n_ranks;
	unsigned          gone; /* bit i: the folder of candidate i has no such recording */
	/* with --shard and sets of ranks, the files of each candidate (n_sets); or NULL */
	vn_rank_files    *set;
	int               n_sets;
	struct {
		const vn_report_form *form;
		const char           *path;
		bool                  placed, unsaid;
	} report[VN_COMPARE_REPORTS]; /* path NULL: stdout; placed: by -o; unsaid: by -o, and no --format says its form */
	int         n_reports;
	const char *model_from; /* the recording that gave the model, if nobody else did; or NULL */
	int         colour;     /* vn_colour_choice */
	bool        force, all, quiet, no_pager, open, shard, vote, replay, no_replay, routing, explain;
	enum { VN_NONE_ABSENT, VN_NO_REFERENCE, VN_NO_CANDIDATE } absent; /* of a pair of two folders */
	vn_folder_part part;                                              /* of the pairs of two folders */
	const char    *summary;                                           /* file for the outcomes of all pairs; or NULL */
	vn_sides       sides;                                             /* names and rows; the files are listed above */
	vn_comparing   how;
} vn_compare_line;

/* Each compares, writes the reports and prints messages. The first two return the outcome without
 * name and sides, the last one the exit status. */
vn_together_pair vn_compare_pair(const vn_compare_line *k);
vn_together_pair vn_compare_many(const vn_compare_line *k);
int              vn_compare_folders(const vn_compare_line *k);

/* Returns the files of candidate i of several: *file (the result). */
int vn_compare_files_of(const vn_compare_line *k, int i, char *const **file);

/* Makes n comparisons, and adds each to m, in their order. The number of threads is that of the
 * first. */
struct vn_many;
vn_status vn_compare_each(const vn_compare_line *line, int n, struct vn_many *m, vn_error *err);
/* Adds a comparison that ended with this status, and why. chosen: why these limits. */
vn_status vn_compare_add(struct vn_many *m, const char *path, vn_comparison *c, const char *chosen, vn_status ended,
                         const vn_error *why, vn_error *err);

/* The options that select the files and the part to compare, for the commands that a report
 * proposes, without --allow; "" if they are too long. */
void      vn_compare_again(const vn_compare_line *k, char again[VN_SHELL_LINE]);
/* Opens the files and the limits of a pair. opened: as in vn_sides, or NULL. chosen: why these
 * limits, for reports. */
vn_status vn_compare_open(const vn_compare_line *k, vn_comparison *c, vn_recording *const opened[2], char *chosen,
                          size_t room, vn_error *err);
/* Opens the files and the limits, and compares. If nobody declared the candidate's precision and
 * operations are wrong everywhere, finds the formats in which they are right, and judges by these
 * (compare_judge.c). If one file of the pair is absent, opens the other. */
vn_status vn_compare_judge(const vn_compare_line *k, vn_comparison *c, char *chosen, size_t room, vn_error *err);
/* The second half of it: c was opened and compared, with request.unexplained. Finds the formats, if
 * nobody declared them, and the causes. */
vn_status vn_compare_infer(const vn_compare_line *k, vn_comparison *c, char *chosen, size_t room, vn_error *err);
/* As vn_compare_judge, if one file is absent: everything in the other is missing or extra. */
vn_status vn_compare_judge_alone(const vn_compare_line *k, vn_comparison *c, char *chosen, size_t room, vn_error *err);
/* Refuse: a comparison of a file with itself; outputs that cannot be written, or that are inputs;
 * report i if an earlier report has the same file. */
vn_status vn_compare_check_itself(const vn_compare_line *k, vn_result *r, vn_error *err);
vn_status vn_compare_check_places(const vn_compare_line *k, vn_error *err);
vn_status vn_compare_check_apart(const vn_compare_line *k, int i, vn_error *err);

/* Adds a note for each option that no argument gives, but settings or a recording. */
void vn_compare_settings(const vn_compare_line *k, vn_lines *notes);
bool vn_compare_shows_text(const vn_compare_line *k); /* on stdout */
bool vn_compare_all_to_files(const vn_compare_line *k);
void vn_compare_print_files(const vn_compare_line *k); /* "Written: FILE, FILE", and a line feed */
/* Whether a report on stdout has colours. VN_COLOUR_AUTO: it is a terminal that takes them, or
 * CLICOLOR_FORCE is set; and NO_COLOR is not. */
bool vn_colours(vn_colour_choice choice);
