"""Reads columns of Parquet and Arrow files with pyarrow. Each line of the standard input is JSON,
{"name": file, "asked": columns}, and is answered by one, {"rows": n, "columns": {name: values}}.
Columns that pyarrow cannot read, and those whose names occur twice, are left out. If no columns are
asked for, the answer is only whether the file can be read: {"rows": n} or {"error": text}.

	python public.py MAXROWS

A value is null, a boolean, a list, or a string: an integer; the bits of a double in hex; days,
microseconds, or the integer of another time; a decimal without its point; "s" and text; "x" and
bytes in hex.
"""
import decimal, json, struct, sys
import pyarrow as pa, pyarrow.compute as pc, pyarrow.ipc as ipc, pyarrow.parquet as pq

most = int(sys.argv[1])
types = pa.types
MICROSECONDS = {'s': (1_000_000, 1), 'ms': (1_000, 1), 'us': (1, 1), 'ns': (1, 1_000)}
decimal.getcontext().prec = 100


def scaled(values, factor, divisor):
    return [None if v is None else str(v * factor // divisor) if v * factor % divisor == 0 else 'inexact %d' % v for v in values]


def double(v):
    return 'nan' if v != v else '%016x' % struct.unpack('<Q', struct.pack('<d', v))[0]


def text(v):
    try:
        return 's' + v.decode()
    except UnicodeDecodeError:
        return 'x' + v.hex()


def show(a):
    """Returns the values of an array."""
    t = a.type
    some = lambda f: [None if v is None else f(v) for v in a.to_pylist()]
    integers = lambda: a.cast(pa.int32() if t.bit_width == 32 else pa.int64()).to_pylist()
    if isinstance(t, pa.BaseExtensionType): return show(a.storage)
    if types.is_dictionary(t): return show(a.dictionary_decode())
    if types.is_run_end_encoded(t): return show(pc.run_end_decode(a))
    if types.is_boolean(t) or types.is_null(t): return a.to_pylist()
    if types.is_integer(t): return some(str)
    if types.is_floating(t): return some(lambda v: double(float(v)))
    if types.is_date64(t): return scaled(integers(), 1, 86_400_000)
    if types.is_timestamp(t): return scaled(integers(), *MICROSECONDS[t.unit])
    if types.is_date32(t) or types.is_time(t) or types.is_duration(t): return scaled(integers(), 1, 1)
    if types.is_decimal(t): return some(lambda v: str(int(v.scaleb(t.scale))))
    if types.is_string(t) or types.is_large_string(t): return [None if v is None else text(v) for v in a.cast(pa.large_binary()).to_pylist()]
    if types.is_string_view(t): return some(lambda v: 's' + v)
    if types.is_binary(t) or types.is_large_binary(t) or types.is_fixed_size_binary(t) or types.is_binary_view(t): return some(lambda v: 'x' + v.hex())
    if types.is_list(t) or types.is_large_list(t) or types.is_fixed_size_list(t) or types.is_list_view(t) or types.is_large_list_view(t):
        return [show(v.values) if v.is_valid else None for v in a]
    raise NotImplementedError(str(t))


def read(name, columns=None):
    """Returns the columns of a file that are asked for, or all."""
    with open(name, 'rb') as f: magic = f.read(6)
    if magic.startswith(b'PAR1'):
        f = pq.ParquetFile(name, coerce_int96_timestamp_unit='us', page_checksum_verification=True)
        return f.read(columns=columns)
    if magic == b'ARROW1': return ipc.open_file(name).read_all()
    return ipc.open_stream(name).read_all()


def judge(name, asked):
    try:
        whole = read(name, asked)
    except Exception as e:
        if asked is None: return {'error': str(e).split('\n')[0]}
        whole = None
    if asked is None: return {'rows': whole.num_rows}
    columns, rows = {}, 0
    for c in asked:
        try:
            table = whole if whole is not None else read(name, [c])
            if table.column_names.count(c) != 1: continue
            values = []
            for chunk in table.slice(0, most).column(c).chunks: values += show(chunk)
            columns[c], rows = values, table.num_rows
        except Exception as e:
            print(name, c, e, file=sys.stderr)
    return {'rows': rows, 'columns': columns}


for line in sys.stdin: print(json.dumps(judge(**json.loads(line))), flush=True)
