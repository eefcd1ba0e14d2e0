/* runs.c: see runs.h. */
#include "compare/text/runs.h"

#include "libref/base/shell.h"

#include <stdio.h>

void vn_runs_of(vn_lines *lines, const char *begin, const char *const *word, size_t n)
{
	char line[VN_SHELL_LINE];

	snprintf(line, sizeof line, "%s", begin);
	for (size_t i = 0; i < n; i++)
		if (word[i])
			vn_shell_add(line, sizeof line, word[i]);
	if (*line)
		vn_lines_add(lines, "%s", line);
}

static void add_run(const char *engine, const char *model, const char *options, const char *more, const char *to,
                    vn_lines *lines)
{
	char line[VN_SHELL_LINE] = "vernier capture", all[VN_SHELL_LINE];

	vn_shell_add(line, sizeof line, engine);
	vn_shell_add(line, sizeof line, model);
	if (*line && snprintf(all, sizeof all, "%s%s%s -o %s", line, options, more, to) < (int)sizeof all)
		vn_lines_add(lines, "%s", all);
}

void vn_runs_suggest(const char *model, const char *source, const char *engine, const char *more, vn_lines *lines)
{
	char line[VN_SHELL_LINE], ref[VN_SHELL_FILE] = "reference.h5", cand[VN_SHELL_FILE] = "candidate.h5";

	vn_shell_new_file(ref, sizeof ref);
	vn_shell_new_file(cand, sizeof cand);
	snprintf(line, sizeof line, "vernier explain %s %s --model", ref, cand);
	vn_shell_add(line, sizeof line, model);
	if (!*source || !*line)
		return;
	add_run("ref", model, source, "", ref, lines);
	add_run(engine, model, source, more, cand, lines);
	vn_lines_add(lines, "%s", line);
}
