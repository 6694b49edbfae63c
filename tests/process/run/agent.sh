#!/bin/sh
# An agent that plays: turn N of the folder named first is `N.sh` there, the last one for ever. What it
# was told is kept as `N.prompt`. The words it can use are below.
plays=$1
n=$(($(cat "$plays/count" 2>/dev/null || echo 0) + 1))
echo "$n" > "$plays/count"
cat > "$plays/$n.prompt"

# Tokens of one API call, and what the turn cost.
uses() {
    echo '{"type":"assistant","session_id":"s","message":{"id":"m'$n'","model":"claude-sonnet-4-5","content":[{"type":"text","text":"I work."}],"usage":{"input_tokens":'$1',"output_tokens":10}}}'
    echo '{"type":"result","subtype":"success","is_error":false,"result":"I work.","total_cost_usd":'$2'}'
}
# A tool call that is visible in the output.
looks() {
    echo '{"type":"assistant","message":{"id":"l'$n'","content":[{"type":"tool_use","id":"l'$n'","name":"Read","input":{"file_path":"work.txt"}}]}}'
}
# A change that it commits itself.
commits() {
    looks
    echo "$1" >> work.txt
    git add work.txt
    git -c user.name=a -c user.email=a@b -c commit.gpgsign=false commit -qm "$1"
}
# The API refuses the call.
refused() {
    echo '{"type":"result","subtype":"success","is_error":true,"result":"'"$1"'"}'
    exit 1
}
# It never ends, nor does what it started, and it does not listen.
hangs() {
    trap '' TERM
    sh -c "trap '' TERM; sleep 300" &
    echo $! > "$plays/grandchild"
    sleep 300
}
floods() { head -c "$1" /dev/zero | tr '\0' 'x'; echo; }
garbage() { head -c 20000 /dev/urandom; echo; echo '{"type":"result"'; echo '[{]'; }
# It runs the command that the prompt names, as it is written there.
claims() {
    command=$(sed -n 's/.*`\(.* signal emit COMPLETION_REQUESTED\)`.*/\1/p' "$plays/$n.prompt" | tail -1)
    sh -c "$command" > /dev/null
}

play="$plays/$n.sh"
[ -f "$play" ] || play=$(ls "$plays"/*.sh | sort | tail -1)
. "$play"
