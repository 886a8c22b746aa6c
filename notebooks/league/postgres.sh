#!/bin/sh
# A Postgres with pgbench's and sysbench's tables on a port of 127.0.0.1; its files go when it ends.
# It does not run as root; the user postgres, or nobody, runs it there.
set -e
if [ "$(id -u)" = 0 ]; then
    user=postgres
    id postgres >/dev/null 2>&1 || user=nobody
    exec setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups sh "$0" "$1"
fi
data=$(mktemp -d)
trap 'kill "$server" 2>/dev/null; wait; rm -rf "$data"' EXIT
trap 'exit 1' TERM INT HUP
initdb -D "$data/db" -A trust -U postgres --no-sync >/dev/null
config="-c fsync=off -c unix_socket_directories=$data"
pg_ctl -D "$data/db" -w -o "$config -c listen_addresses=" start >/dev/null
pgbench -h "$data" -U postgres -i -q postgres >/dev/null 2>&1
if command -v sysbench >/dev/null; then
    sysbench oltp_point_select --db-driver=pgsql --pgsql-host="$data" --pgsql-user=postgres \
        --pgsql-db=postgres --tables=1 --table-size=1000 prepare >/dev/null
fi
pg_ctl -D "$data/db" -w stop >/dev/null
postgres -D "$data/db" -h 127.0.0.1 -p "$1" -k "$data" -c fsync=off >/dev/null 2>&1 &
server=$!
wait "$server"
