#!/usr/bin/env bash
# duckdb's Parquet files with infinite dates and timestamps: the others read finite ones.
#
# Versions: duckdb 2.0.1, pyarrow 26.0.1, polars 2.1.0.
#
# duckdb has 'infinity' and '-infinity' as dates and timestamps. Parquet has no such values: duckdb
# stores the greatest integer and its negative, and nothing in the file says so. duckdb reads them
# back as infinite; the others read times in the years 294247 and -290308.
#
# Output seen:
#
#	duckdb   ['infinity', '-infinity', 'infinity', '-infinity']
#	pyarrow  [9223372036854775807, -9223372036854775807, 2147483647, -2147483647]
#	polars   [9223372036854775807, -9223372036854775807, 2147483647, -2147483647]
#
# Exits with 1 if one of them behaves otherwise.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install -q duckdb==2.0.1 pyarrow==26.0.1 polars==2.1.0
"$dir/venv/bin/python" - "$dir/d.parquet" <<'PYTHON'
import sys
import duckdb, polars, pyarrow, pyarrow.parquet

name = sys.argv[1]
duckdb.connect().execute(
    "copy (select 'infinity'::timestamp t, '-infinity'::timestamp u, 'infinity'::date d, '-infinity'::date e) "
    f"to '{name}' (format parquet)")


def arrow():
    table = pyarrow.parquet.read_table(name)
    wide = [table[c].cast(pyarrow.int64()) for c in 'tu'] + [table[c].cast(pyarrow.int32()) for c in 'de']
    return [c[0].as_py() for c in wide]


numbers = '[9223372036854775807, -9223372036854775807, 2147483647, -2147483647]'
want = {'duckdb': "['infinity', '-infinity', 'infinity', '-infinity']", 'pyarrow': numbers, 'polars': numbers}
got = {
    'duckdb': str(list(duckdb.sql(f"select t::varchar, u::varchar, d::varchar, e::varchar from '{name}'").fetchall()[0])),
    'pyarrow': str(arrow()),
    'polars': str([polars.read_parquet(name)[c].to_physical()[0] for c in 'tude']),
}
for program, text in got.items():
    print(f'{program:8} {text}')
sys.exit(got != want)
PYTHON
