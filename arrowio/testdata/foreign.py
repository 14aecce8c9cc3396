"""Writes the files in foreign/ with pyarrow, and their rows as pyarrow reads them (rows.jsonl).

	python foreign.py foreign

Each line of rows.jsonl is a JSON array: the name of a file, then the rows, in which binary
values are hex, and timestamps are microseconds since 1970.
"""
import base64, datetime, decimal, json, os, sys
import pyarrow as pa, pyarrow.parquet as pq, pyarrow.parquet.encryption as pe

out = sys.argv[1]
n = 40
utc = datetime.timezone.utc
some = lambda f, every=3: [None if i % every == 0 else f(i) for i in range(n)]

plain = pa.table({
    'k': pa.array(range(n), pa.int64()),
    'i': pa.array(some(lambda i: i * 7 - 100), pa.int32()),
    'u': pa.array(some(lambda i: 255 - i), pa.uint8()),
    'f': pa.array(some(lambda i: i / 4 + 0.125), pa.float64()),
    'b': pa.array(some(lambda i: i % 2 == 0), pa.bool_()),
    's': pa.array(some(lambda i: 'word %d' % (i % 4)), pa.string()),
    't': pa.array(['text %d é' % i for i in range(n)], pa.string()),
    'x': pa.array(some(lambda i: bytes([i, 0, 255])), pa.binary()),
    'd': pa.array(some(lambda i: datetime.date(1969, 12, 20) + datetime.timedelta(days=i)), pa.date32()),
    'w': pa.array(some(lambda i: datetime.datetime(1969, 12, 31, 23, 59, 50, 123456, utc) + datetime.timedelta(seconds=i)), pa.timestamp('us', 'UTC')),
})
decimals = pa.table({
    'k': pa.array(range(n), pa.int64()),
    'small': pa.array(some(lambda i: decimal.Decimal(i - 20).scaleb(-2)), pa.decimal128(9, 2)),
    'long': pa.array(some(lambda i: decimal.Decimal((i - 20) * 10**14).scaleb(-4)), pa.decimal128(18, 4)),
    'wide': pa.array(some(lambda i: decimal.Decimal((i - 20) * 10**20 + 1)), pa.decimal128(38, 0)),
})
nested = pa.table({
    'k': pa.array(range(n), pa.int64()),
    'list': pa.array([None if i % 5 == 0 else [None if j % 3 == 2 else 10 * i + j for j in range(i % 4)] for i in range(n)], pa.list_(pa.int32())),
    'words': pa.array([None if i % 7 == 0 else ['w%d' % j for j in range(i % 3)] for i in range(n)], pa.list_(pa.string())),
    'struct': pa.array(some(lambda i: {'a': i, 'b': 'x'}), pa.struct([('a', pa.int32()), ('b', pa.string())])),
    'lists': pa.array(some(lambda i: [[i]]), pa.list_(pa.list_(pa.int32()))),
    'map': pa.array(some(lambda i: [('a', i)]), pa.map_(pa.string(), pa.int32())),
})
nulls = pa.table({
    'k': pa.array(range(n), pa.int64()),
    'i': pa.array([None] * n, pa.int32()),
    's': pa.array([None] * n, pa.string()),
    'l': pa.array([None] * n, pa.list_(pa.int32())),
    'd': pa.array([None] * n, pa.decimal128(30, 2)),
})

fixed = pa.table({
    'k': pa.array(range(n), pa.int64()),
    'uuid': pa.array(some(lambda i: b'%016d' % (i * i)), pa.binary(16)),
    'decimal': pa.array(some(lambda i: decimal.Decimal((i - 20) * 10**20 + 1).scaleb(-2)), pa.decimal128(38, 2)),
    'half': pa.array(some(lambda i: i / 4 + 0.125), pa.float16()),
    'float': pa.array(some(lambda i: i / 8 + 0.0625), pa.float32()),
    'int': pa.array(some(lambda i: i * 1000 - 7), pa.int32()),
})

files = {
    'v1-dictionary': (plain, dict(data_page_version='1.0', use_dictionary=True, compression='none')),
    'v1-plain': (plain, dict(data_page_version='1.0', use_dictionary=False, compression='snappy')),
    'v2-dictionary': (plain, dict(data_page_version='2.0', use_dictionary=True, compression='zstd')),
    'v2-plain': (plain, dict(data_page_version='2.0', use_dictionary=False, compression='gzip')),
    'pages': (plain, dict(data_page_size=20, write_batch_size=3, row_group_size=17, write_page_index=True)),
    'no-statistics': (plain, dict(write_statistics=False, store_schema=False, compression='lz4')),
    'encodings': (plain, dict(use_dictionary=False, compression='none', column_encoding={
        'k': 'DELTA_BINARY_PACKED', 'i': 'DELTA_BINARY_PACKED', 'f': 'BYTE_STREAM_SPLIT', 's': 'DELTA_BYTE_ARRAY', 't': 'DELTA_LENGTH_BYTE_ARRAY', 'b': 'RLE'},
        data_page_version='2.0')),
    'fixed-prefixes': (fixed, dict(use_dictionary=False, data_page_version='2.0', compression='snappy', data_page_size=100, write_batch_size=7,
        column_encoding={'uuid': 'DELTA_BYTE_ARRAY', 'decimal': 'DELTA_BYTE_ARRAY', 'half': 'DELTA_BYTE_ARRAY'})),
    'fixed-split': (fixed, dict(use_dictionary=False, column_encoding={c: 'BYTE_STREAM_SPLIT' for c in fixed.column_names})),
    'checksums-v1': (plain, dict(write_page_checksum=True, compression='snappy', data_page_size=20, write_batch_size=9)),
    'checksums-v2': (plain, dict(write_page_checksum=True, data_page_version='2.0', compression='none')),
    'brotli': (plain, dict(compression='brotli', data_page_version='2.0')),
    'int96': (plain, dict(use_deprecated_int96_timestamps=True)),
    'decimals-integers': (decimals, dict(store_decimal_as_integer=True)),
    'decimals-fixed': (decimals, dict()),
    'nested': (nested, dict()),
    'nulls': (nulls, dict()),
    'empty': (plain.slice(0, 0), dict()),
    'no-groups': (plain.schema, dict()),
}


def show(v):
    if isinstance(v, bytes): return v.hex()
    if isinstance(v, decimal.Decimal): return format(v, 'f')
    if isinstance(v, datetime.datetime): return str((v - datetime.datetime(1970, 1, 1, tzinfo=utc)) // datetime.timedelta(microseconds=1))
    if isinstance(v, datetime.date): return v.isoformat()
    if isinstance(v, list): return [show(x) for x in v]
    return v


os.makedirs(out, exist_ok=True)
with open(os.path.join(out, 'rows.jsonl'), 'w') as rows:
    for name, (table, options) in files.items():
        path = os.path.join(out, name + '.parquet')
        if isinstance(table, pa.Schema):
            pq.ParquetWriter(path, table).close()
        else:
            pq.write_table(table, path, **options)
        read = pq.read_table(path)
        if name == 'nested': read = read.select(['k', 'list', 'words'])
        if name == 'int96': read = read.set_column(9, 'w', read['w'].cast(pa.timestamp('us')).cast(pa.timestamp('us', 'UTC')))
        print(json.dumps([name] + [[show(v) for v in row.values()] for row in read.to_pylist()]), file=rows)


class Keys(pe.KmsClient):
    """A key server that does not protect the keys."""
    def __init__(self, _): super().__init__()
    def wrap_key(self, key, _): return base64.b64encode(key)
    def unwrap_key(self, key, _): return base64.b64decode(key)


for name, plaintext in (('encrypted-footer', False), ('encrypted-columns', True)):
    config = pe.EncryptionConfiguration(footer_key='f', column_keys={'c': ['s']}, plaintext_footer=plaintext)
    properties = pe.CryptoFactory(Keys).file_encryption_properties(pe.KmsConnectionConfig(), config)
    with pq.ParquetWriter(os.path.join(out, name + '.parquet'), plain.schema, encryption_properties=properties) as w:
        w.write_table(plain)
