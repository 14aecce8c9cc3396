package kuduwal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/kuduschema"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

func testDecoder(t testing.TB) *Decoder {
	t.Helper()
	s := must.Get(kuduschema.FromMessage(testSchema()))(t)
	return must.Get(NewDecoder(s))(t)
}

func request(t testing.TB, client *kudupb.SchemaPB, rows, indirect []byte) *kudupb.WriteRequestPB {
	return &kudupb.WriteRequestPB{TabletId: []byte("t"), Schema: marshal(t, client),
		RowOperations: &kudupb.RowOperationsPB{Rows: rows, IndirectData: indirect}}
}

// The example in the comment above indirectLen.
func TestRowIsTheDocumentedExample(t *testing.T) {
	d := testDecoder(t)
	rows := must.Hex(t, "01 03 00 ce 03 00 00 00 00 00 00 00 00 00 00 06 00 00 00 00 00 00 00")
	n := 0
	must.Do(t, d.Each(request(t, testSchema(), rows, []byte("pewter")), func(r *Row) error {
		n++
		if want := must.Hex(t, "80 00 03 ce"); r.Kind != Insert || r.Ignore || r.Problem != "" ||
			!bytes.Equal(r.Key, want) {
			t.Errorf("%v, key % x, problem %q", r.Kind, r.Key, r.Problem)
		}
		image := d.Image(r, nil)
		must.Do(t, d.format.Check(image))
		if cells := d.format.AppendCells(nil, image); binary.LittleEndian.Uint32(cells[0]) != 974 ||
			string(cells[1]) != "pewter" || cells[2] != nil {
			t.Errorf("cells %q", cells)
		}
		return nil
	}))
	must.Equal(t, n, 1)
}

// row encodes an operation: values are int32 for k, string for fixed, int64 for free, nil for
// unset, and the word NULL.
func row(kind kudupb.RowOperationType, values ...any) (rows []byte) {
	b := []byte{byte(kind), 0, 0}
	for i, v := range values {
		if v == nil {
			continue
		}
		b[1] |= 1 << i
		switch v := v.(type) {
		case int:
			if i == 0 {
				b = binary.LittleEndian.AppendUint32(b, uint32(v))
			} else {
				b = binary.LittleEndian.AppendUint64(b, uint64(v))
			}
		case string: // always at the beginning of the indirect data
			if v == "NULL" {
				b[2] |= 1 << i
				continue
			}
			b = binary.LittleEndian.AppendUint64(b, 0)
			b = binary.LittleEndian.AppendUint64(b, uint64(len(v)))
		}
	}
	return b
}

func TestRowsOfAllKinds(t *testing.T) {
	for _, c := range []struct {
		kind    kudupb.RowOperationType
		values  []any
		want    string // kind, then the list of changes
		problem string
	}{
		{kudupb.RowOperationType_INSERT, []any{1, nil, "NULL"}, "insert", ""},
		{kudupb.RowOperationType_INSERT_IGNORE, []any{1, "ab", 7}, "insert ignore", ""},
		{kudupb.RowOperationType_UPSERT, []any{1, "ab", nil}, "upsert 01 01 03 61 62", ""},
		{kudupb.RowOperationType_UPSERT, []any{1, nil, nil}, "upsert", ""},
		{kudupb.RowOperationType_UPSERT_IGNORE, []any{1, "", nil}, "upsert ignore 01 01 01", ""},
		{kudupb.RowOperationType_UPDATE, []any{1, "NULL", 5}, "update 01 01 00 02 09 05 00 00 00 00 00 00 00", ""},
		{kudupb.RowOperationType_UPDATE_IGNORE, []any{1, nil, "NULL"}, "update ignore 01 02 00", ""},
		{kudupb.RowOperationType_DELETE_ROW, []any{1}, "delete 02", ""},
		{kudupb.RowOperationType_DELETE_IGNORE, []any{1}, "delete ignore 02", ""},
		{kudupb.RowOperationType_UPDATE, []any{1}, "", "without a value"},
		{kudupb.RowOperationType_UPDATE, []any{nil, "a"}, "", "key column k"},
		{kudupb.RowOperationType_DELETE_ROW, []any{1, "a"}, "", "delete with a value"},
		{kudupb.RowOperationType_INSERT, []any{"NULL", "a"}, "", "NULL in"},
	} {
		d := testDecoder(t)
		must.Do(t, d.Each(request(t, testSchema(), row(c.kind, c.values...), []byte("abc")), func(r *Row) error {
			if c.problem != "" || r.Problem != "" {
				if c.problem == "" || !strings.Contains(r.Problem, c.problem) {
					t.Errorf("%v %v: problem %q, want %q", c.kind, c.values, r.Problem, c.problem)
				}
				return nil
			}
			got := r.Kind.String()
			if r.Ignore {
				got += " ignore"
			}
			if r.Kind != Insert {
				list, ok := d.Change(r, nil)
				if len(list) > 0 {
					must.Do(t, list.Check(d.last))
					got += fmt.Sprintf(" % x", []byte(list))
				}
				if !ok {
					got += " refused"
				}
			}
			must.Equal(t, got, c.want, c.kind, c.values)
			return nil
		}))
	}
}

// The tablet's schema changed after the operation: columns are found by their IDs, dropped ones
// vanish from images, and new ones have their read defaults.
func TestRowsOfOlderSchemas(t *testing.T) {
	old, err := kuduschema.FromMessage(testSchema())
	must.Do(t, err)
	m := testSchema()
	m.Columns[2].Name = proto.String("renamed")
	m.Columns[1] = &kudupb.ColumnSchemaPB{Id: proto.Uint32(3), Name: proto.String("fixed"),
		Type:             proto.Int32(int32(kudupb.DataType_STRING)),
		ReadDefaultValue: []byte("before"), WriteDefaultValue: []byte("after")}
	last := must.Get(kuduschema.FromMessage(m))(t)
	d := must.Get(NewDecoder(last))(t)
	cells := func(client *kudupb.SchemaPB, values ...any) (out string) {
		t.Helper()
		must.Do(t, d.Each(request(t, client, row(kudupb.RowOperationType_UPSERT, values...), []byte("abc")),
			func(r *Row) error {
				image := d.Image(r, nil)
				must.Do(t, d.format.Check(image))
				list, _ := d.Change(r, nil)
				out = fmt.Sprintf("%q %q", d.format.AppendCells(nil, image)[1:], []byte(list))
				return nil
			}))
		return out
	}
	must.Equal(t, cells(m, 1, nil, "NULL"), `["after" ""] "\x01\x02\x00"`)
	must.Do(t, d.SetSchema(old, false))
	must.Equal(t, cells(testSchema(), 1, "abc", "NULL"), `["before" ""] "\x01\x01\x04abc\x02\x00"`)
	must.Fail(t, d.Each(request(t, m, row(kudupb.RowOperationType_UPSERT, 1), nil), nil),
		fault.ErrCorrupt, "a column of the newest schema in the older one")
	dropped := testSchema()
	dropped.Columns = append(dropped.Columns[:1], dropped.Columns[2])
	m.Columns[1].ReadDefaultValue = nil
	if last, err = kuduschema.FromMessage(m); err == nil {
		d, err = NewDecoder(last)
	}
	must.Do(t, err)
	without := must.Get(kuduschema.FromMessage(dropped))(t)
	must.Fail(t, d.SetSchema(without, false),
		fault.ErrCorrupt, "an older schema without a column that has no default")
	must.Do(t, d.SetSchema(without, true))
	must.Equal(t, cells(dropped, 1, "NULL"), `["after" ""] "\x01\x02\x00"`)
	other := testSchema()
	other.Columns[0].Type = proto.Int32(int32(kudupb.DataType_INT64))
	o := must.Get(kuduschema.FromMessage(other))(t)
	must.Fail(t, d.SetSchema(o, false), fault.ErrCorrupt, "another type of the key")
}

func TestAutoIncrementAndImmutableColumns(t *testing.T) {
	m := testSchema()
	m.Columns[1] = &kudupb.ColumnSchemaPB{Id: proto.Uint32(1), Name: proto.String(schema.AutoIncrementName),
		Type:  proto.Int32(int32(kudupb.DataType_INT64)),
		IsKey: proto.Bool(true), IsAutoIncrementing: proto.Bool(true)}
	m.Columns[2].Immutable = proto.Bool(true)
	s := must.Get(kuduschema.FromMessage(m))(t)
	d := must.Get(NewDecoder(s))(t)
	run := func(counter int64, rows ...[]byte) (out []string, err error) {
		w := request(t, m, bytes.Join(rows, nil), nil)
		if counter >= 0 {
			w.AutoIncrementingColumn = &kudupb.AutoIncrementingColumnPB{AutoIncrementingCounter: &counter}
		}
		err = d.Each(w, func(r *Row) error {
			list, ok := d.Change(r, nil)
			out = append(out, fmt.Sprintf("%d %d %v %s", r.Key[len(r.Key)-1], len(list), ok, r.Problem))
			return nil
		})
		return out, err
	}
	insert := row(kudupb.RowOperationType_INSERT, 5)
	upsert := row(kudupb.RowOperationType_UPSERT, 5, 30, 1)
	ignore := row(kudupb.RowOperationType_UPSERT_IGNORE, 5, 8, 1)
	for _, c := range []struct {
		counter int64
		rows    [][]byte
		want    string
	}{
		{10, [][]byte{insert, insert, upsert, ignore, insert},
			"11 0 true |12 0 true |30 0 false |8 0 true |31 0 true "},
		{-1, [][]byte{insert}, "32 0 true "},
		{3, [][]byte{insert}, "4 0 true "},
	} {
		must.Equal(t, strings.Join(must.Get(run(c.counter, c.rows...))(t), "|"), c.want)
	}
	for _, bad := range [][]byte{row(kudupb.RowOperationType_INSERT, 5, 7), row(kudupb.RowOperationType_UPSERT, 5)} {
		must.Fail(t, must.Err(run(1, bad)), fault.ErrCorrupt, bad)
	}
	must.Fail(t, must.Err(run(1<<63-1, insert)), fault.ErrCorrupt, "no value left")
}

func TestMalformedRequests(t *testing.T) {
	good := row(kudupb.RowOperationType_INSERT, 1, "abc", 7)
	long := bytes.Clone(good)
	long[3+4+8]++
	for _, c := range []struct {
		name   string
		change func(w *kudupb.WriteRequestPB)
		err    error
	}{
		{"cut off", func(w *kudupb.WriteRequestPB) { w.RowOperations.Rows = good[:len(good)-1] }, fault.ErrCorrupt},
		{"no bitmaps", func(w *kudupb.WriteRequestPB) { w.RowOperations.Rows = good[:2] }, fault.ErrCorrupt},
		{"kind 0", func(w *kudupb.WriteRequestPB) { w.RowOperations.Rows = make([]byte, 20) }, fault.ErrCorrupt},
		{"bound of a range", func(w *kudupb.WriteRequestPB) { w.RowOperations.Rows[0] = 6 }, fault.ErrCorrupt},
		{"byte string too long", func(w *kudupb.WriteRequestPB) { w.RowOperations.Rows = long }, fault.ErrCorrupt},
		{"no schema", func(w *kudupb.WriteRequestPB) { w.Schema = nil }, fault.ErrCorrupt},
		{"malformed schema", func(w *kudupb.WriteRequestPB) { w.Schema = []byte{0xff} }, fault.ErrCorrupt},
		{"many columns", func(w *kudupb.WriteRequestPB) {
			w.Schema = bytes.Repeat([]byte{10, 0}, 1000)
		}, fault.ErrCorrupt},
		{"transaction", func(w *kudupb.WriteRequestPB) { w.TxnId = proto.Int64(3) }, fault.ErrUnsupported},
	} {
		w := request(t, testSchema(), bytes.Clone(good), []byte("abc"))
		c.change(w)
		must.Fail(t, testDecoder(t).Each(w, func(*Row) error { return nil }), c.err, c.name)
	}
}

// The bounds of a range are the specification's; what is not a bound is refused.
func TestRangeBounds(t *testing.T) {
	columns := []schema.Column{{ID: 0, Name: "k", Type: schema.Int32}, {ID: 1, Name: "h", Type: schema.String},
		{ID: 2, Name: "n", Type: schema.Int64}}
	s := must.Get(schema.New(columns, 2))(t)
	message := []byte("\x12\x0c\x06\x01\x00\x00\x00\x00\x07\x01\x64\x00\x00\x00")
	lower, upper, err := RangeBounds(message, s)
	if err != nil || string(lower[0]) != "\x00\x00\x00\x00" || string(upper[0]) != "\x64\x00\x00\x00" ||
		lower[1] != nil || upper[2] != nil {
		t.Errorf("bounds %x, %x (%v)", lower, upper, err)
	}
	if lower, upper, err := RangeBounds(nil, s); lower != nil || upper != nil || err != nil {
		t.Errorf("no bounds: %x, %x (%v)", lower, upper, err)
	}
	for i := 3; i < len(message); i++ {
		cut := append([]byte{0x12, byte(i - 2)}, message[2:i]...)
		if _, _, err := RangeBounds(cut, s); (err == nil) != (i == 8) {
			t.Errorf("cut to %x: %v", cut, err)
		}
	}
	for _, kind := range []byte{1, 6, 8, 9} {
		other := append([]byte{}, message...)
		other[8] = kind
		must.Fail(t, must.Err2(RangeBounds(other, s)), fault.ErrCorrupt, kind)
	}
}
