#!/usr/bin/env bash
# install.sh: the first step of action.yml. Installs $PACKAGE with pip where no vernier is on the
# PATH. No package is guessed by its name: whoever owns that name on an index would run in the job.
set -eu
if command -v vernier >/dev/null; then
	exit 0
fi
if [ -z "${PACKAGE:-}" ]; then
	echo "::error::no vernier on the PATH: install it in an earlier step, or give its wheel as \`package: PATH-OR-URL\`"
	exit 2
fi
pip install "$PACKAGE"
