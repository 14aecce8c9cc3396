#!/usr/bin/env bash
# Apache Kudu's servers have another limit of messages when the tool kudu runs them.
#
# Version: kudu-binary 1.18.1 of Maven Central, masters on the loopback interface.
#
# `kudu master run` starts the same server as the program kudu-master, with the same flags, but
# rpc_max_message_size is not 50 MiB there. A test with servers that the tool runs does not find
# messages that are too large for those of a cluster.
#
# Output seen, the flag rpc_max_message_size:
#
#	kudu-master: 52428800
#	kudu master run: 2147483647
#
# Needs Linux on x86-64, Maven, and Python 3. Exits with 1 if Kudu behaves otherwise.
set -euo pipefail
dir=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$dir"' EXIT
version=1.18.1
(cd "$dir" && mvn -q -B dependency:copy -Dartifact="org.apache.kudu:kudu-binary:$version:jar:linux-x86_64" -DoutputDirectory="$dir") >&2
python3 -m zipfile -e "$dir/kudu-binary-$version-linux-x86_64.jar" "$dir"
home=$dir/kudu-binary-$version-linux-x86_64
chmod +x "$home"/bin/*
export LD_LIBRARY_PATH=$home/lib SASL_PATH=$home/lib/sasl2

# limit prints the flag of a master that the rest of the arguments start.
limit() { # name, port, command
	local name=$1 address=127.0.0.1:$2 value attempt
	shift 2
	"$@" --unlock_unsafe_flags --unlock_experimental_flags --time_source=system_unsync --webserver_enabled=false \
		--fs_wal_dir="$dir/$name" --log_dir="$dir" --rpc_bind_addresses="$address" > "$dir/$name.log" 2>&1 &
	pids+=($!)
	for ((attempt = 0; attempt < 60; attempt++)); do
		if value=$("$home/bin/kudu" master get_flags "$address" --flags=rpc_max_message_size --format=csv \
			2>/dev/null); then
			echo "$name: $(cut -d, -f2 <<<"$value")"
			return 0
		fi
		sleep 1
	done
	echo "$name: no answer" >&2
	return 1
}

port=$((20000 + RANDOM % 10000))
limit kudu-master "$port" "$home/bin/kudu-master" > "$dir/output"
limit "kudu master run" "$((port + 1))" "$home/bin/kudu" master run >> "$dir/output"
cat "$dir/output"
diff "$dir/output" - <<'OUT'
kudu-master: 52428800
kudu master run: 2147483647
OUT
