# The version, and what keeps a hostile file from this machine.
vernier --version | sed 's/[0-9.]*$/N/'
vernier --version --verbose | sed -E '1s/[0-9.]*$/N/; 2s/(whole|in part).*/SAID/'
