# Runs the nodes of a Galera cluster in a folder of its own, for galera.rs, which says on the input what to do and is
# answered by a line each. When the input ends, because the tests did, everything goes.
#
#   start NODE [OPTION]   starts a node, from where it was if it ran before
#   kill NODE             kills it as kill -9 does
#   freeze NODE           lets it stand still, as kill -STOP does
#   thaw NODE             lets it go on
install=$1 server=$2

tidy() {
    trap '' HUP INT TERM
    for node in 0 1 2; do end "$node"; done
    # State transfers run in process groups of their own and outlive their server for a moment.
    while left=$(pgrep -u "$(id -u)" -f "$folder/"); do
        kill -9 $left 2>/dev/null
        sleep 0.1
    done
    rm -rf "$folder"
}

end() {
    eval "pid=\${pid_$1:-}"
    [ -n "$pid" ] || return 0
    kill -9 "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    eval "pid_$1="
}

signal() {
    eval "pid=\${pid_$2:-}"
    [ -z "$pid" ] || kill "-$1" "$pid"
}

start() {
    # As Debian's own unit does: a node that says where it was gets what it missed, not everything.
    position=
    if [ -f "$folder/$1/grastate.dat" ]; then
        position=$("$server" --defaults-file="$folder/$1.cnf" --wsrep-recover 2>&1 |
            sed -n 's/.*Recovered position: *//p')
    fi
    "$server" --defaults-file="$folder/$1.cnf" $2 ${position:+"--wsrep-start-position=$position"} \
        >"$folder/$1.log" 2>&1 &
    eval "pid_$1=$!"
}

# Tests that are gone are noticed by the end of the input, not by an answer that nobody reads.
trap ':' PIPE
trap 'exit 1' HUP INT TERM
folder=$(mktemp -d "${TMPDIR:-/tmp}/postway-galera.XXXXXX") || exit 1
trap tidy EXIT
mkdir "$folder/1" "$folder/2" &&
    "$install" --no-defaults --datadir="$folder/0" --auth-root-authentication-method=normal --skip-test-db \
        >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }
echo "$folder"

while read -r word node option; do
    case $word in
        start) start "$node" "$option" ;;
        kill) end "$node" ;;
        freeze) signal STOP "$node" ;;
        thaw) signal CONT "$node" ;;
    esac
    echo "$word $node"
done
