/* option_rows.h: the rows that the option tables of several commands have in common
 * (libref/base/options.h).
 *
 * type, field: the command's struct, and its member that receives the value.
 */
#pragma once

#include "libref/base/options.h"

/* The table of a vn_command. */
#define VN_OPTION_TABLE(rows) .option = (rows), .n = sizeof(rows) / sizeof *(rows)

#define VN_THREADS_OPTION(type, field) \
	{ \
		"threads", 0, VN_INTO(type, field), VN_RANGE(1, 1024), \
			.argument = "N", \
			.help = "Use at most N threads, 1 to 1024. The numbers do not depend on it. " \
					"Default: one thread per processor." \
	}
#define VN_DEVICE_OPTION(type, field) \
	{ \
		"device", 0, VN_INTO(type, field), VN_RANGE(0, 255), \
			.argument = "N", \
			.help = \
				"GPU number, as listed by vernier devices. Default: VERNIER_DEVICE, else the best suitable device." \
	}
/* --kv: an int of enum vn_kv_layout */
enum vn_kv_layout { VN_KV_CONTIGUOUS, VN_KV_PAGED };
#define VN_KV_OPTION(type, field) \
	{ \
		"kv", 0, VN_CHOOSE(type, field), \
			.argument = "contiguous|paged", \
			.help = \
				"Layout of keys and values on the GPU: in one piece, or in blocks found through a block table, as in " \
				"engines that serve many sequences. The results are the same, bit for bit. Default: contiguous." \
	}
#define VN_MTP_OPTION(type, field) \
	{ \
		"mtp", 0, VN_INTO(type, field), \
			.help = \
				"Also run the model's multi-token-prediction head, from its weights mtp.* (vernier help models.md). " \
				"Default: ignore them, as transformers does." \
	}
/* what: "prompt" */
#define VN_NO_SPECIAL_OPTION(type, field, what) \
	{ \
		"no-special-tokens", 0, VN_INTO(type, field), \
			.help = "Add no special tokens to the " what ". Default: add those that the tokenizer's file asks for, " \
					"such as Llama 3's token at the beginning of a text." \
	}
/* --ids, --ids-from and --batch-row of a command that runs a model. source: a vn_prompt_source, its
 * row -1. */
#define VN_IDS_OPTIONS(type, source) \
	{ "ids", \
	  0, \
	  VN_INTO(type, source.list), \
	  .argument = "LIST|@FILE", \
	  .not_with = "ids-from|prompt|text|no-special-tokens", \
	  .because = "gives the tokens", \
	  .help = "Run these token ids: 1,2,3 or [1,2,3]. @FILE: those in a file or pipe, as such a list or in JSON." }, \
		{ "ids-from", \
		  0, \
		  VN_INTO(type, source.recording), \
		  .argument = "REC", \
		  .not_with = "prompt|text|no-special-tokens", \
		  .because = "gives the tokens", \
		  .help = "Run the token ids of the prompt of the recording REC." }, \
	{ \
		"batch-row", 0, VN_INTO(type, source.row), VN_RANGE(0, INT32_MAX), \
			.argument = "N", .needs = "ids-from|like", \
			.help = \
				"If REC holds several prompts (rows of a batch, or prompts one after another), take prompt N, from 0." \
	}
/* --force-ids and --force-ids-from. instead: what they replace, or ""; more: further sentences on
 * the second, or "". */
#define VN_FORCE_IDS_OPTIONS(type, list, recording, instead, more) \
	{ "force-ids", \
	  0, \
	  VN_INTO(type, list), \
	  .argument = "LIST|@FILE", \
	  .not_with = "force-ids-from|decode", \
	  .because = "gives the decoded tokens", \
	  .help = "After the prompt, decode these tokens, one step each" instead ". With the tokens that another engine " \
		      "decoded, the two runs can be compared step by step." }, \
	{ \
		"force-ids-from", 0, VN_INTO(type, recording), \
			.argument = "REC", .not_with = "decode", .because = "gives the decoded tokens", \
			.help = "After the prompt, decode the tokens that were decoded in the recording REC. With --ids-from REC " \
					"too, the run has all tokens of REC." more \
	}
/* list, n: a list of maps in the command's struct; whose: "CAND's"; then members, .set_without */
#define VN_NAMES_OPTION(type, list, n, whose, ...) \
	{ \
		"names", 0, VN_COLLECT(type, list, n), \
			.argument = "MAP", .changes_verdict = true, .repeated = true, __VA_ARGS__, \
			.help = "Translate " whose " names by a map: hf (modules of transformers), vllm, llama.cpp, or a file " \
					"(vernier help names.md). Several maps are applied in order. Default: names as they are." \
	}
/* --force of a command that writes a recording to FILE */
#define VN_RECORDING_FORCE(type, field) \
	{ \
		"force", 0, VN_INTO(type, field), .help = "Replace FILE if it is a recording. Other files are never replaced." \
	}
#define VN_PAGER_OPTION(type, field) \
	{ \
		"no-pager", 0, VN_INTO(type, field), \
			.help = "Print the text straight to a terminal. Default: through VERNIER_PAGER, else PAGER, else less." \
	}
#define VN_STRICT_OPTION(type, field, what) \
	{ \
		"strict", 0, VN_INTO(type, field), .changes_verdict = true, .repeated = true, \
										   .help = "Treat every warning as a failure: exit status 1" what "." \
	}
