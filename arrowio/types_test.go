package arrowio

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	pq "github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/schema"
)

// typesScript writes an Arrow file, an Arrow stream, and a Parquet file with a column of each type
// of pyarrow that a table can have in some form, and their cells as a line of JSON for each column.
const typesScript = `
import sys, json, datetime, decimal
import pyarrow as pa, pyarrow.parquet as pq, pyarrow.ipc as ipc
D = decimal.Decimal
n = 6
def col(t, values, want=None):
    return pa.array(values, t), [str(x) if isinstance(x, D) else x.hex() if isinstance(x, bytes) else x for x in (values if want is None else want)]
i = [5, None, -7, 0, 2**31 - 1, 86399]
s = ['a', None, 'a long enough string', '', 'a', 'é']
b = [x and x.encode() if x else (None if x is None else b'') for x in s]
runs = pa.RunEndEncodedArray.from_arrays
columns = {
    'null': col(pa.null(), [None] * n),
    'words with NULL': (pa.DictionaryArray.from_arrays(pa.array([0, None, 2, 1, 2, 0], pa.int8()), pa.array(['a', '', None])), ['a', None, None, '', None, 'a']),
    'nulls': col(pa.list_(pa.null()), [[None], None, [], [None, None], [], []]),
    'duration list': col(pa.list_(pa.duration('ms')), [[3, None], None, [], [-4], [], []]),
    'time list': col(pa.list_(pa.time64('us')), [[3, None], None, [], [4], [], []]),
    'large list': col(pa.large_list(pa.int8()), [[3, None], None, [], [-4], [], []]),
    'fixed list': col(pa.list_(pa.string(), 2), [['x', None], None, ['', 'y'], ['a', 'b'], None, ['c', 'd']]),
    'large string': col(pa.large_string(), s), 'string view': col(pa.string_view(), s),
    'large binary': col(pa.large_binary(), b), 'binary view': col(pa.binary_view(), b),
    'float16': col(pa.float16(), [1.5, None, -2.0, 0.0, 65504.0, 0.25]),
    'wide decimal': col(pa.decimal256(60, 2), [D('1.50'), None, D('-9' + '9' * 35 + '.99'), D('0.00'), D('0.01'), D('-1.00')]),
    'decimal32': col(pa.decimal32(9, 2), [D('1.50'), None, D('-9999999.99'), D('0.00'), D('0.01'), D('-1.00')]),
    'decimal64': col(pa.decimal64(18, 0), [D(1), None, D(-999999999999999999), D(0), D(2), D(-1)]),
}
for unit in ['s', 'ms', 'us', 'ns']:
    columns['duration ' + unit] = col(pa.duration(unit), i)
for unit, t in [('s', pa.time32('s')), ('ms', pa.time32('ms')), ('us', pa.time64('us')), ('ns', pa.time64('ns'))]:
    v = [5, None, 7, 0, 1, 86399]
    columns['time ' + unit] = pa.array(v, pa.int32() if t.bit_width == 32 else pa.int64()).cast(t), v
    if unit == 's': columns['time s'] = columns['time s'][0], columns['time s'][1]
for t in [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()]:
    columns['dictionary %s' % t] = pa.DictionaryArray.from_arrays(pa.array([0, None, 2, 1, 2, 0], t), pa.array(['a', '', 'c'])), ['a', None, 'c', '', 'c', 'a']
columns['numbers'] = pa.DictionaryArray.from_arrays(pa.array([0, None, 2, 1, 2, 0], pa.int8()), pa.array([7, -1, 3])), [7, None, 3, -1, 3, 7]
only_arrow = {}
for t in [pa.int16(), pa.int32(), pa.int64()]:
    only_arrow['runs %s' % t] = runs(pa.array([1, 2, 5, 6], t), pa.array([4, None, 9, 4])), [4, None, 9, 9, 9, 4]
only_arrow['runs of words'] = runs(pa.array([1, 3, 5, 9], pa.int32()), pa.array(['z', 'a', None, 'b'])).slice(1, 6), ['a', 'a', None, None, 'b', 'b']
only_arrow['runs of lists'] = runs(pa.array([2, 6], pa.int32()), pa.array([[1, None], [2]], pa.list_(pa.int8()))), [[1, None], [1, None], [2], [2], [2], [2]]
only_arrow['list view'] = pa.ListViewArray.from_arrays(pa.array([3, 0, 0, 1, 4, 2]), pa.array([2, 1, 0, 3, 1, 0]), pa.array([1, 2, None, 4, 5]), mask=pa.array([False, True, False, False, False, False])), [[4, 5], None, [], [2, None, 4], [5], []]
only_arrow['large list view'] = pa.LargeListViewArray.from_arrays(pa.array([1, 0, 0, 1, 2, 2], pa.int64()), pa.array([2, 1, 0, 1, 1, 0], pa.int64()), pa.array(['a', None, 'c'])), [[None, 'c'], ['a'], [], [None], ['c'], []]
def table(columns): return pa.table({k: v[0] for k, v in columns.items()})
both = {**columns, **only_arrow}
t = table(both)
with ipc.new_file(sys.argv[1] + '/t.arrow', t.schema) as w: w.write_table(t)
with ipc.new_stream(sys.argv[1] + '/t.arrows', t.schema, options=ipc.IpcWriteOptions(compression='zstd')) as w: w.write_table(t)
pq.write_table(table({k: v for k, v in columns.items() if k not in ('nulls', 'time s', 'words with NULL')}), sys.argv[1] + '/t.parquet')
for k, v in both.items(): print(json.dumps([k, [x if not isinstance(x, float) else repr(x) for x in v[1]]]))
`

// jsonText returns v as JSON, floats as text.
func jsonText(t *testing.T, v any) string {
	t.Helper()
	text := must.Get(json.Marshal(v))(t)
	return string(text)
}

// Columns of each of pyarrow's types have the values that pyarrow gives them.
func TestTypesOfPyarrow(t *testing.T) {
	dir := t.TempDir()
	want := map[string]string{}
	for line := range strings.Lines(runPython(t, "pyarrow", typesScript, dir)) {
		var column []any
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		must.Do(t, d.Decode(&column))
		want[column[0].(string)] = jsonText(t, column[1])
	}
	notes := map[string]string{
		"null": noteNull, "nulls": noteNull, "duration ns": "a duration is read as its nanoseconds",
		"duration list": "a duration is read as its milliseconds",
		"time ms":       "a time of day is read as the milliseconds since midnight",
		"time list":     "a time of day is read as the microseconds since midnight",
		"wide decimal":  "decimals of 60 digits are read as those of 38",
	}
	for name, format := range map[string]string{"t.arrow": "arrow", "t.arrows": "stream", "t.parquet": "parquet"} {
		data := must.Get(os.ReadFile(filepath.Join(dir, name)))(t)
		mem := checked(t)
		f, rows := opened(t, format, data, mem, ReadOptions{})
		d := f.Definition()
		got := make([][]any, len(d.Columns))
		for b, err := range rows.Batches() {
			must.Do(t, err)
			for c, v := range b.Columns {
				must.Do(t, v.Validate())
				for i := range b.Rows() {
					text := pythonText(&b.Schema[c], v.Cell(i))
					if n, ok := text.(json.Number); ok && b.Schema[c].Type == schema.Float {
						x, _ := n.Float64()
						text = strings.TrimSuffix(fmt.Sprintf("%.2f", x), "0")
					}
					got[c] = append(got[c], text)
				}
			}
		}
		if len(d.Columns) < 25 {
			t.Errorf("%s: %d columns", name, len(d.Columns))
		}
		for i, c := range d.Columns {
			must.Equal(t, jsonText(t, got[i]), want[c.Name], name, c.Name, c.TypeName())
		}
		for _, n := range d.Notes {
			if want := notes[n.Column]; want != "" && n.Text != want {
				t.Errorf("%s: note of column %q: %s, want %s", name, n.Column, n.Text, want)
			}
		}
		for column := range notes {
			if d.index(column) >= 0 && !slices.ContainsFunc(d.Notes, func(n ColumnNote) bool {
				return n.Column == column
			}) {
				t.Errorf("%s: no note of column %q", name, column)
			}
		}
		rows.Release()
		f.Close()
	}
}

// Times in nanoseconds are refused, or rounded toward the past, before 1970 too, in each format.
func TestNanosecondsAreRoundedDown(t *testing.T) {
	mem := checked(t)
	ns := &arrow.TimestampType{Unit: arrow.Nanosecond}
	fields := arrow.NewSchema([]arrow.Field{{Name: "t", Type: ns, Nullable: true}, {Name: "l", Type: arrow.ListOf(ns)}},
		nil)
	b := array.NewRecordBuilder(mem, fields)
	defer b.Release()
	for _, x := range []int64{1999, 1000, 1, 0, -1, -1000, -1001, 1<<63 - 1, -1 << 63} {
		b.Field(0).(*array.TimestampBuilder).Append(arrow.Timestamp(x))
		l := b.Field(1).(*array.ListBuilder)
		l.Append(true)
		l.ValueBuilder().(*array.TimestampBuilder).Append(arrow.Timestamp(x))
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	r := must.Get(array.NewRecordReader(fields, []arrow.RecordBatch{rec}))(t)
	defer r.Release()
	var out bytes.Buffer
	must.Get(WriteStream(&out, r, ArrowOptions{}))(t)
	files := map[string][]byte{"arrow": out.Bytes(), "parquet": nanosecondsParquet(t)}
	for format, data := range files {
		f, rows := opened(t, format, data, mem, ReadOptions{})
		for rows.Next() {
		}
		var bad *ColumnError
		if err := rows.Err(); !errors.Is(err, ErrNanoseconds) || !errors.Is(err, ErrRow) ||
			errors.Is(err, ErrCorrupt) || !errors.As(err, &bad) || bad.Column != "t" || bad.Row != 0 {
			t.Errorf("%s: %v", format, err)
		}
		rows.Release()
		rows = must.Get(f.Read(context.Background(), ReadOptions{Round: true, Columns: []string{"t"}}))(t)
		same(t, format, foreignRows(t, rows),
			[]string{`["1"]`, `["1"]`, `["0"]`, `["0"]`, `["-1"]`, `["-1"]`, `["-2"]`,
				`["9223372036854775"]`, `["-9223372036854776"]`})
		rows.Release()
		f.Close()
	}
	f, rows := opened(t, "arrow", files["arrow"], mem, ReadOptions{Round: true, Columns: []string{"l"}})
	defer f.Close()
	defer rows.Release()
	if got := foreignRows(t, rows); got[4] != `[["-1"]]` || got[6] != `[["-2"]]` {
		t.Errorf("lists: %v", got)
	}
}

// nanosecondsParquet returns a Parquet file with the times of TestNanosecondsAreRoundedDown.
func nanosecondsParquet(t *testing.T) []byte {
	t.Helper()
	node := must.Get(pq.NewPrimitiveNodeLogical("t", parquet.Repetitions.Required,
		pq.NewTimestampLogicalType(false, pq.TimeUnitNanos), parquet.Types.Int64, 0, -1))(t)
	root := must.Get(pq.NewGroupNode("schema", parquet.Repetitions.Required, pq.FieldList{node}, -1))(t)
	var out bytes.Buffer
	w := file.NewParquetWriter(&out, root)
	column := must.Get(w.AppendRowGroup().NextColumn())(t)
	must.Get(column.(*file.Int64ColumnChunkWriter).WriteBatch([]int64{1999, 1000, 1, 0, -1, -1000, -1001, 1<<63 - 1,
		-1 << 63}, nil, nil))(t)
	must.Do(t, column.Close())
	must.Do(t, w.Close())
	return out.Bytes()
}

// NaNs keep their bits in a Parquet file, and zeros their signs, wherever they are in a column.
func TestNaNsKeepTheirBits(t *testing.T) {
	columns := []schema.Column{{Name: "f", Type: schema.Float}, {Name: "d", Type: schema.Double, Nullable: true},
		column(t, "l", "array(double)")}
	doubles := []uint64{0x7ff8000000000000, 0xfff8000000000000, 0x7ff8000000000123, 0x7ff0000000000001,
		0, 1 << 63, 0x3ff8000000000000}
	floats := []uint32{0x7fc00000, 0xffc00000, 0x7fc00123, 0x7f800001, 0, 1 << 31, 0x3fc00000}
	for seed := range uint64(6) {
		r := values.NewRand(seed)
		var batches []*batch.RecordBatch
		for k := range 3 {
			b := batch.New(columns, 5000)
			from := []int{6, 4, 3, 0}[r.IntN(4)] // the first of those that the batch has
			if k == 0 {
				from = min(4, int(seed)) // they repeat: there is a dictionary
			}
			for i := range b.Len {
				pick := func() int { return from + r.IntN(len(doubles)-from) }
				binary.LittleEndian.PutUint32(b.Columns[0].Data[4*i:], floats[pick()])
				binary.LittleEndian.PutUint64(b.Columns[1].Data[8*i:], doubles[pick()])
				if r.IntN(5) == 0 {
					b.Columns[1].NeedPresent().Clear(i)
				}
				b.Columns[2].Bytes[i] = schema.AppendArray(nil, schema.Double,
					[][]byte{binary.LittleEndian.AppendUint64(nil, doubles[pick()]), nil})
			}
			batches = append(batches, b)
		}
		var want []string
		for _, b := range batches {
			want = selectedRows(want, b)
		}
		_, data := writeBatches(t, columns, ParquetOptions{RowGroupRows: 9000}, cloned(batches))
		same(t, fmt.Sprint("seed ", seed), parquetRows(t, data, ReadOptions{}), want)
	}
}

// What is valid and not read is ErrUnsupported, which names it, in each format.
func TestUnsupportedIsNotDamage(t *testing.T) {
	files := smallFiles(t)
	version := func(data []byte, n byte) []byte { // of the first message
		out := bytes.Clone(data)
		f := flatBuffer{b: out[8:]}
		root := must.Get(f.target(0))(t)
		at, err := f.slot(root, 0)
		if err != nil || at == 0 {
			t.Fatal("no version", err)
		}
		out[8+at] = n
		return out
	}
	arrowFile := bytes.Clone(files["arrow"])
	n := int(binary.LittleEndian.Uint32(arrowFile[len(arrowFile)-10:]))
	footer := flatBuffer{b: arrowFile[len(arrowFile)-10-n : len(arrowFile)-10]}
	root := must.Get(footer.target(0))(t)
	at, err := footer.slot(root, 0)
	if err != nil || at == 0 {
		t.Fatal("no version", err)
	}
	footer.b[at] = 0 // as Arrow 0.14 has it
	f := must.Get(formats["arrow"].open(arrowFile, nil))(t)
	f.Close()
	footer.b[at] = 5
	for name, test := range map[string]struct {
		format string
		data   []byte
		want   string
	}{
		"a stream of the future": {"stream", version(files["stream"], 5), "Arrow metadata of version 6"},
		"a file of the future":   {"arrow", arrowFile, "Arrow metadata of version 6"},
		"a stream of the past":   {"stream", version(files["stream"], 2), "Arrow metadata of version 3"},
		"Feather":                {"arrow", append([]byte("FEA1"), make([]byte, 100)...), "Feather version 1"},
	} {
		f, err := formats[test.format].open(test.data, nil)
		if err == nil {
			f.Close()
		}
		if !errors.Is(err, ErrUnsupported) || errors.Is(err, ErrCorrupt) ||
			!strings.Contains(fmt.Sprint(err), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Tables whose vtable ends within a field are refused: readers do not agree whether it has the
// field.
func TestVtablesOfOddSizesAreRefused(t *testing.T) {
	for size, want := range map[byte]error{3: ErrCorrupt, 4: nil, 5: ErrCorrupt, 6: nil, 7: ErrCorrupt, 8: nil,
		9: ErrCorrupt, 250: ErrCorrupt} {
		b := make([]byte, 24)
		b[0], b[4], b[6], b[16] = 16, size, 8, 16-4 // the table is at byte 16, its vtable at 4
		must.Fail(t, must.Err(checkFlatBuffer(b, fbSchema)), want, size)
	}
}
