#!/bin/sh
# Runs policyd if it is installed. If not, the user sees how to install it once per session, and nothing is blocked.
PATH="$PATH:$HOME/.local/bin:${CARGO_HOME:-$HOME/.cargo}/bin"
if command -v policyd >/dev/null 2>&1; then
    exec policyd "$@"
fi
case "$*" in
*session-start*) echo '{"systemMessage": "policyd is not installed, so its plugin checks nothing. Install it: npm install --global policyd"}' ;;
esac
exit 0
