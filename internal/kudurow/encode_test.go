package kudurow

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/kuduwal"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// The example of the wire protocol.
func TestUpsertIsTheDocumentedExample(t *testing.T) {
	e := NewEncoder(exampleSchema(t))
	var r Rows
	must.Do(t, e.AppendRow(&r, kudupb.RowOperationType_UPSERT, [][]byte{{1, 0, 0, 0}, nil, []byte("xy")}, nil))
	must.Equal(t, r.Operations, must.Hex(t, "05 07 02 01000000 0000000000000000 0200000000000000"))
	must.Equal(t, string(r.Indirect), "xy")
	must.Equal(t, r.N, 1)
}

var rowOperations = []Operation{kudupb.RowOperationType_INSERT, kudupb.RowOperationType_UPSERT,
	kudupb.RowOperationType_UPDATE, kudupb.RowOperationType_DELETE_ROW, kudupb.RowOperationType_INSERT_IGNORE,
	kudupb.RowOperationType_UPSERT_IGNORE, kudupb.RowOperationType_UPDATE_IGNORE, kudupb.RowOperationType_DELETE_IGNORE}

// The decoder of servers' logs reads rows of random schemas as they were, if they are encoded from
// cells and if they are encoded from the columns of a batch. The two differ in the order of the byte
// strings.
func TestRandomRowsAreDecoded(t *testing.T) {
	r := seedtest.Rand(t)
	for range seedtest.Rounds(300, 60) {
		s := randomSchema(t, r)
		op := rowOperations[r.IntN(len(rowOperations))]
		if len(s.Columns) == s.Keys && isUpdate(op) {
			continue
		}
		e := NewEncoder(s)
		var rows [][][]byte
		var want, got Rows
		for range 1 + r.IntN(600) {
			rows = append(rows, randomRow(r, s.Columns))
		}
		b := batchOf(s.Columns, rows)
		for _, v := range b.Columns {
			if !v.Type.Variable() && r.IntN(2) == 0 {
				v.Bytes = make([][]byte, 0, 3) // memory of an earlier use
			}
		}
		var at []int32
		for i, cells := range rows {
			if r.IntN(3) == 0 {
				b.Selection.Clear(i)
				continue
			}
			at = append(at, int32(i))
			must.Do(t, e.AppendRow(&want, op, cells, nil))
		}
		source := must.Get(e.Source(op, b))(t)
		must.Equal(t, source.Fit(at, 1<<30), len(at))
		source.AppendRows(&got, at)
		must.Equal(t, got.N, want.N)
		must.Equal(t, got.Bytes(), want.Bytes())
		checkDecoded(t, s, op, &got, rows, at)
		checkDecoded(t, s, op, &want, rows, at)
	}
}

// checkDecoded decodes rows as a server decodes them.
func checkDecoded(t *testing.T, s *schema.Schema, op Operation, got *Rows, rows [][][]byte, at []int32) {
	t.Helper()
	d := must.Get(kuduwal.NewDecoder(s))(t)
	message := must.Get(proto.Marshal(WireSchema(s)))(t)
	e := NewEncoder(s)
	n := 0
	must.Do(t, d.Each(&kudupb.WriteRequestPB{Schema: message, RowOperations: got.Message()}, func(row *kuduwal.Row) error {
		cells := rows[at[n]]
		n++
		must.Equal(t, row.Problem, "")
		must.Equal(t, row.Ignore, op >= kudupb.RowOperationType_INSERT_IGNORE)
		must.Equal(t, row.Key, must.Get(e.Key(nil, cells))(t))
		if !isDelete(op) {
			must.Equal(t, d.Image(row, nil), imageOf(s, cells))
		}
		return nil
	}))
	must.Equal(t, n, len(at))
}

// A batch in dictionary form has the rows of its words, and columns in any order.
func TestSourceOfDictionaries(t *testing.T) {
	s := exampleSchema(t)
	b := batchOf([]schema.Column{s.Columns[2], s.Columns[0]},
		[][][]byte{{nil, {1, 0, 0, 0}}, {nil, {2, 0, 0, 0}}, {nil, {3, 0, 0, 0}}})
	b.Columns[0].UseCodes(&batch.Dictionary{Words: [][]byte{[]byte("xy"), []byte("z")}}, 3)
	copy(b.Columns[0].Codes, []uint32{1, 0, 0})
	b.Columns[0].NeedPresent().Set(0)
	b.Columns[0].Present.Clear(1)
	b.Columns[0].Present.Set(2)
	source := must.Get(NewEncoder(s).Source(kudupb.RowOperationType_UPSERT, b))(t)
	var r Rows
	source.AppendRows(&r, []int32{2, 0, 1})
	must.Equal(t, string(r.Indirect), "xyz")
	must.Equal(t, r.Operations, must.Hex(t, `
		05 05 00 03000000 0000000000000000 0200000000000000
		05 05 00 01000000 0200000000000000 0100000000000000
		05 05 04 02000000`))
}

// Servers store cells as they come, or refuse all rows of a request because of one: what is wrong is
// refused before, by name, from cells and from columns.
func TestWrongCellsAreRefused(t *testing.T) {
	columns := []schema.Column{{Name: "k", Type: schema.String}, {Name: "b", Type: schema.Bool},
		{Name: "d", Type: schema.Date}, {Name: "n", Type: schema.Decimal32, Precision: 3},
		{Name: "m", Type: schema.Decimal64, Precision: 12}, {Name: "l", Type: schema.Decimal128, Precision: 20},
		{Name: "v", Type: schema.Varchar, Length: 2}, {Name: "x", Type: schema.Binary}}
	s := must.Get(schema.New(columns, 1))(t)
	good := [][]byte{[]byte("k"), {1}, {1, 0, 0, 0}, {1, 0, 0, 0}, {7: 0}, {15: 0}, []byte("éé"), {0xff}}
	e := NewEncoder(s)
	refuse := func(at int, cell []byte, text string) {
		t.Helper()
		cells := append([][]byte(nil), good...)
		cells[at] = cell
		var r Rows
		err := e.AppendRow(&r, kudupb.RowOperationType_UPSERT, cells, nil)
		must.Fail(t, err, fault.ErrRow, text)
		must.Contain(t, err.Error(), text)
		must.Equal(t, r.N+len(r.Operations), 0)
		if w := s.Columns[at].Type.Width(); w > 0 && cell != nil && len(cell) != w {
			return // a vector has no such cell
		}
		b := batchOf(s.Columns, [][][]byte{good, good, cells})
		_, err = e.Source(kudupb.RowOperationType_UPSERT, b)
		must.Fail(t, err, fault.ErrRow, text)
		must.Contain(t, err.Error(), text)
		must.Equal(t, err.(*CellError).Row, 2)
		b.Selection.Clear(2)
		must.Do(t, must.Err(e.Source(kudupb.RowOperationType_UPSERT, b)))
	}
	refuse(0, []byte(strings.Repeat("x", schema.MaxKeyBytes+1)), "the encoded key has 16385 bytes")
	refuse(0, []byte{0xff}, `column "k": the text is not valid UTF-8`)
	refuse(0, nil, `column "k": NULL`)
	refuse(1, []byte{7}, `column "b": a bool of 7`)
	refuse(1, []byte{1, 0}, `column "b": 2 bytes, want 1`)
	refuse(2, []byte{0, 0, 0, 0x7f}, `column "d": date`)
	refuse(3, []byte{0xe8, 3, 0, 0}, `column "n": 1000 has more than 3 digits`)
	refuse(3, []byte{0x18, 0xfc, 0xff, 0xff}, `column "n": -1000 has more than 3 digits`)
	refuse(4, binary.LittleEndian.AppendUint64(nil, 1e12), `column "m": 1000000000000 has more`)
	refuse(5, bytes.Repeat([]byte{0x7f}, 16), `column "l"`)
	refuse(6, []byte("ééé"), `column "v": 3 characters, at most 2`)
	refuse(7, make([]byte, MaxCellBytes+1), `column "x": 65537 bytes, at most 65536`)
	refuse(7, nil, `column "x": NULL`)
}

func TestOperationsGiveTheirColumns(t *testing.T) {
	columns := []schema.Column{{Name: "k", Type: schema.Int8}, {Name: schema.AutoIncrementName, Type: schema.Int64,
		AutoIncrement: true}, {Name: "v", Type: schema.Int8}, {Name: "w", Type: schema.Int8, Nullable: true}}
	s := must.Get(schema.New(columns, 2))(t)
	e := NewEncoder(s)
	cells := [][]byte{{1}, {2, 0, 0, 0, 0, 0, 0, 0}, {3}, {4}}
	for _, c := range []struct {
		op   Operation
		set  string
		want string // the bytes, or an error
	}{
		{kudupb.RowOperationType_INSERT, "", "01 0d 00 01 03 04"},
		{kudupb.RowOperationType_INSERT, "1101", "inserts do not give it"},
		{kudupb.RowOperationType_INSERT, "1000", `column "v": not given`},
		{kudupb.RowOperationType_UPSERT, "", "05 0f 00 01 0200000000000000 03 04"},
		{kudupb.RowOperationType_UPSERT, "1010", `column "auto_incrementing_id": the key column is not given`},
		{kudupb.RowOperationType_UPDATE_IGNORE, "1101", "0b 0b 00 01 0200000000000000 04"},
		{kudupb.RowOperationType_UPDATE, "1100", "an update gives a column besides the key"},
		{kudupb.RowOperationType_DELETE_ROW, "", "03 03 00 01 0200000000000000"},
		{kudupb.RowOperationType_DELETE_ROW, "1110", `column "v": a delete gives the key only`},
		{kudupb.RowOperationType_RANGE_LOWER_BOUND, "1100", "operation 6"},
	} {
		var set batch.Bitmap
		if c.set != "" {
			set = batch.MakeBitmap(len(cells))
			for i, bit := range c.set {
				if bit == '1' {
					set.Set(i)
				}
			}
		}
		var r Rows
		if err := e.AppendRow(&r, c.op, cells, set); err != nil {
			must.Contain(t, err.Error(), c.want)
			must.Fail(t, err, fault.ErrRow)
			continue
		}
		must.Equal(t, r.Operations, must.Hex(t, c.want), c)
	}
}

// Bounds of ranges are decoded as the package that reads superblocks decodes them.
func TestBounds(t *testing.T) {
	s := exampleSchema(t)
	e := NewEncoder(s)
	var r Rows
	must.Do(t, e.AppendBound(&r, kudupb.RowOperationType_RANGE_LOWER_BOUND, [][]byte{{9, 0, 0, 0}, nil, nil}))
	must.Do(t, e.AppendBound(&r, kudupb.RowOperationType_RANGE_UPPER_BOUND, make([][]byte, 3)))
	lower, upper := must.Get2(kuduwal.RangeBounds(must.Get(proto.Marshal(r.Message()))(t), s))(t)
	must.Equal(t, lower, [][]byte{{9, 0, 0, 0}, nil, nil})
	must.Equal(t, upper, make([][]byte, 3))
	must.Fail(t, e.AppendBound(&r, kudupb.RowOperationType_RANGE_UPPER_BOUND, [][]byte{{9}, nil, nil}), fault.ErrRow)
}

// A key whose last columns are missing starts at their least values.
func TestLeastKeys(t *testing.T) {
	s := must.Get(schema.New([]schema.Column{{Name: "a", Type: schema.Int16}, {Name: "b", Type: schema.String},
		{Name: "c", Type: schema.Int8}, {Name: "d", Type: schema.String}}, 4))(t)
	e := NewEncoder(s)
	for want, cells := range map[string][][]byte{
		"0000 0000 00": nil, "8007 0000 00": {{7, 0}}, "8007 61 0000 00": {{7, 0}, []byte("a")},
		"8007 61 0000 81 62": {{7, 0}, []byte("a"), {1}, []byte("b")},
	} {
		must.Equal(t, must.Get(e.Least(cells))(t), must.Hex(t, want), fmt.Sprint(cells))
	}
	must.Fail(t, must.Err(e.Least(make([][]byte, 5))), fault.ErrRow)
	must.Fail(t, must.Err(e.Least([][]byte{{1}})), fault.ErrRow)
}

// Batches that do not fit the table are refused.
func TestSourcesThatDoNotFit(t *testing.T) {
	s := exampleSchema(t)
	e := NewEncoder(s)
	k, v := schema.Column{Name: "k", Type: schema.Int32}, schema.Column{Name: "v", Type: schema.Int64}
	row := func(columns ...schema.Column) *batch.RecordBatch { return batch.New(columns, 3) }
	short := row(k, v)
	short.Columns[1].Data = short.Columns[1].Data[:8]
	for name, c := range map[string]struct {
		b    *batch.RecordBatch
		want error
	}{
		"unknown column":    {row(k, schema.Column{Name: "vv", Type: schema.Int64}), fault.ErrNoColumn},
		"other type":        {row(k, schema.Column{Name: "v", Type: schema.Int32}), fault.ErrSchema},
		"column twice":      {row(k, v, v), fault.ErrSchema},
		"without key":       {row(v), fault.ErrRow},
		"too few cells":     {short, fault.ErrSchema},
		"vector is missing": {&batch.RecordBatch{Schema: []schema.Column{k, v}, Len: 1}, fault.ErrRow},
		"no selection":      {&batch.RecordBatch{Len: 1}, fault.ErrRow},
		"vector that is null": {&batch.RecordBatch{Schema: []schema.Column{k},
			Columns: []*batch.Vector{nil}}, fault.ErrSchema},
	} {
		must.Fail(t, must.Err(e.Source(kudupb.RowOperationType_UPSERT, c.b)), c.want, name)
	}
	// A delete gives the key only.
	d := must.Get(e.Source(kudupb.RowOperationType_DELETE_ROW, row(v, k)))(t)
	must.Equal(t, len(d.columns), 1)
}

// Source takes no allocation for each row.
func BenchmarkEncode(b *testing.B) {
	var columns []schema.Column
	for i := range 16 {
		c := schema.Column{Name: fmt.Sprint("c", i), Type: valueTypes[2+i%8], Nullable: i > 8}
		columns = append(columns, c)
	}
	columns[0].Type = schema.Int64
	for i := range columns {
		if columns[i].Type == schema.Varchar {
			columns[i].Length = 20
		}
	}
	s := must.Get(schema.New(columns, 1))(b)
	r := seedtest.Rand(b)
	var rows [][][]byte
	for range 4096 {
		rows = append(rows, randomRow(r, columns))
	}
	in := batchOf(s.Columns, rows)
	at := make([]int32, len(rows))
	for i := range at {
		at[i] = int32(i)
	}
	e := NewEncoder(s)
	var out Rows
	b.ReportAllocs()
	for b.Loop() {
		out.Reset()
		source := must.Get(e.Source(kudupb.RowOperationType_UPSERT, in))(b)
		source.AppendRows(&out, at)
	}
	b.SetBytes(int64(out.Bytes()))
	b.ReportMetric(float64(b.N)*float64(len(rows))/b.Elapsed().Seconds()/1e6, "Mrows/s")
}

// Operations that are read back and appended again are the same bytes if they were appended from cells.
func TestOperationsAreReadBack(t *testing.T) {
	r := seedtest.Rand(t)
	for range seedtest.Rounds(200, 50) {
		s := randomSchema(t, r)
		e := NewEncoder(s)
		var rows [][][]byte
		var in, out Rows
		for range 1 + r.IntN(30) {
			row := randomRow(r, s.Columns)
			op := []Operation{kudupb.RowOperationType_UPSERT, kudupb.RowOperationType_DELETE_ROW}[r.IntN(2)]
			must.Do(t, e.AppendRow(&in, op, row, nil))
			if isDelete(op) {
				clear(row[s.Keys:])
			}
			rows = append(rows, row)
		}
		n := 0
		must.Do(t, e.Each(&in, func(row *Row) error {
			must.Equal(t, row.Cells, rows[n])
			e.Append(&out, row)
			n++
			return nil
		}))
		must.Equal(t, n, len(rows))
		must.Equal(t, out.Operations, in.Operations)
		must.Equal(t, string(out.Indirect), string(in.Indirect))
	}
}

func TestRowsThatFit(t *testing.T) {
	s := exampleSchema(t)
	rows := [][][]byte{{{1, 0, 0, 0}, nil, make([]byte, 100)}, {{2, 0, 0, 0}, nil, []byte{}}, {{3, 0, 0, 0}, nil, nil}}
	source := must.Get(NewEncoder(s).Source(kudupb.RowOperationType_UPSERT, batchOf(s.Columns, rows)))(t)
	const stride = 1 + 1 + 1 + 4 + 8 + 16
	at := []int32{0, 1, 2}
	for limit, want := range map[int]int{1: 1, stride + 100: 1, 2*stride + 99: 1, 2*stride + 100: 2, 3*stride + 100: 3} {
		must.Equal(t, source.Fit(at, limit), want, limit)
	}
	must.Equal(t, source.Fit(nil, 1), 0)
}
