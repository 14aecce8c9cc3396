#!/usr/bin/env bash
# duckdb's Parquet files of version V2: differences of an INT32 column in 33 bits.
#
# Versions: duckdb 2.0.1, pyarrow 26.0.1, fastparquet 2026.9.0, polars 2.1.0.
#
# With parquet_version 'V2' duckdb stores integers as DELTA_BINARY_PACKED. It subtracts values of an
# INT32 column in 64 bits, so that neighbors far from each other take 33 bits; other writers let
# INT32 differences wrap around and need 32 at most. duckdb and polars read such a column. pyarrow
# refuses it as cut off, and fastparquet reads other values, without an error.
#
# The column begins with 2147483647, -2147483647, 2147483645. Output seen:
#
#	duckdb       [2147483647, -2147483647, 2147483645]
#	polars       [2147483647, -2147483647, 2147483645]
#	pyarrow      OSError: Unexpected end of stream: InitBlock EOF
#	fastparquet  [2147483647, -2147483647, -3]
#
# Exits with 1 if one of them behaves otherwise.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install -q duckdb==2.0.1 pyarrow==26.0.1 fastparquet==2026.9.0 polars==2.1.0
"$dir/venv/bin/python" - "$dir/d.parquet" <<'PYTHON'
import sys
import duckdb, fastparquet, polars, pyarrow.parquet

name = sys.argv[1]
duckdb.connect().execute(
    "copy (select (case when i % 2 = 0 then 2147483647 - i else -2147483648 + i end)::int as v from range(300) t(i)) "
    f"to '{name}' (format parquet, parquet_version 'V2', dictionary_size_limit 1)")


def arrow():
    return pyarrow.parquet.read_table(name)['v'].to_pylist()[:3]


def seen(read):
    try:
        return str(read())
    except Exception as e:
        return f'{type(e).__name__}: {e}'


true = '[2147483647, -2147483647, 2147483645]'
want = {'duckdb': true, 'polars': true, 'pyarrow': 'OSError: Unexpected end of stream: InitBlock EOF',
        'fastparquet': '[2147483647, -2147483647, -3]'}
got = {
    'duckdb': seen(lambda: [r[0] for r in duckdb.sql(f"select v from '{name}' limit 3").fetchall()]),
    'polars': seen(lambda: polars.read_parquet(name)['v'].to_list()[:3]),
    'pyarrow': seen(arrow),
    'fastparquet': seen(lambda: fastparquet.ParquetFile(name).to_pandas()['v'].tolist()[:3]),
}
for program, text in got.items():
    print(f'{program:12} {text}')
sys.exit(got != want)
PYTHON
