package arrowio

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/metadata"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/schema"
)

// withFooter returns a Parquet file with another footer.
func withFooter(data, footer []byte) []byte {
	n := int(binary.LittleEndian.Uint32(data[len(data)-8:]))
	out := append(slices.Clone(data[:len(data)-8-n]), footer...)
	return append(binary.LittleEndian.AppendUint32(out, uint32(len(footer))), parquetMagic...)
}

// changed returns a Parquet file with changed metadata.
func changed(t *testing.T, data []byte, change func(m *metadata.FileMetaData)) []byte {
	t.Helper()
	footer := must.Get(readFooterBytes(bytes.NewReader(data), int64(len(data))))(t)
	m := must.Get(metadata.NewFileMetaData(footer, nil))(t)
	change(m)
	footer = must.Get(m.Serialize(context.Background()))(t)
	return withFooter(data, footer)
}

// parquetRows returns the rows of a Parquet file.
func parquetRows(t *testing.T, data []byte, o ReadOptions) []string {
	t.Helper()
	f := openedParquet(t, data)
	defer f.Close()
	return fileRows(t, f, o)
}

func openedParquet(t *testing.T, data []byte) *File {
	t.Helper()
	return must.Get(OpenParquet(bytes.NewReader(data), int64(len(data)), OpenOptions{}))(t)
}

// fileRows returns rows of a file.
func fileRows(t *testing.T, f *File, o ReadOptions) []string {
	t.Helper()
	rows := must.Get(f.Read(context.Background(), o))(t)
	defer rows.Release()
	out := []string{}
	for b, err := range rows.Batches() {
		must.Do(t, err)
		out = selectedRows(out, b)
	}
	return out
}

// Files in which position, path, and type of column chunks disagree, or with statistics that other
// readers do not use: each gives what it must.
func TestCasesOfOtherReaders(t *testing.T) {
	for name, o := range map[string]ReadOptions{
		"empty-group":   {Columns: []string{"id", "a"}},
		"no-null-count": {Columns: []string{"id"}, Where: []oribi.Predicate{oribi.IsNull("a")}},
		"legacy-minmax": {Where: []oribi.Predicate{oribi.Eq("s", "ab")}},
	} {
		dir := filepath.Join(corpustest.Dir(t), "cases", name)
		f, rows := opened(t, "parquet", corpustest.Read(t, filepath.Join(dir, "input.parquet")), nil, o)
		got := ""
		for b, err := range rows.Batches() {
			must.Do(t, err)
			for i := range b.Rows() {
				row := map[string]json.RawMessage{}
				for c, v := range b.Columns {
					row[b.Schema[c].Name] = celltext.AppendJSON(nil, &b.Schema[c], v.Cell(i))
				}
				line := must.Get(json.Marshal(row))(t)
				got += string(line) + "\n"
			}
		}
		rows.Release()
		f.Close()
		want := ""
		for line := range strings.Lines(string(corpustest.Read(t, filepath.Join(dir, "expected.jsonl")))) {
			var row map[string]json.RawMessage
			must.Do(t, json.Unmarshal([]byte(line), &row))
			text, _ := json.Marshal(row)
			want += string(text) + "\n"
		}
		must.Equal(t, got, want, name)
	}
}

// statisticsVariants change the statistics of a file as writers differ. None of them states
// anything false, or else it is something that some writer states and that has no meaning.
var statisticsVariants = map[string]statisticsChange{
	"as they are": func(*rand.Rand, *metadata.FileMetaData, []*batch.RecordBatch) {},
	"no counts": eachStatistics(func(r *rand.Rand, s *statisticsOfChunk) {
		s.NullCount = nil
	}),
	"counts of 0 where there are NULLs": otherWriter("parquet-mr version 1.8.1",
		eachStatistics(func(r *rand.Rand, s *statisticsOfChunk) {
			*s.NullCount = 0
		})),
	"counts of all rows where there are others": otherWriter("some writer",
		eachStatistics(func(r *rand.Rand, s *statisticsOfChunk) {
			*s.NullCount = s.rows
		})),
	"impossible counts": eachStatistics(func(r *rand.Rand, s *statisticsOfChunk) {
		*s.NullCount = []int64{-1, s.rows + 1, math.MinInt64, math.MaxInt64}[r.IntN(4)]
	}),
	"deprecated bounds only": eachStatistics(func(r *rand.Rand, s *statisticsOfChunk) {
		s.Min, s.Max = s.legacy()
		s.MinValue, s.MaxValue = nil, nil
	}),
	"deprecated bounds too, without orders": withoutOrders(eachStatistics(func(r *rand.Rand, s *statisticsOfChunk) {
		s.Min, s.Max = s.legacy()
		s.MinValue, s.MaxValue = s.legacy()
	})),
	"bounds in an unknown order": withoutOrders(eachStatistics(func(r *rand.Rand, s *statisticsOfChunk) {
		s.MinValue, s.MaxValue = s.MaxValue, s.MinValue
	})),
	"one bound": eachStatistics(func(r *rand.Rand, s *statisticsOfChunk) {
		if r.IntN(2) == 0 {
			s.MinValue = nil
		} else {
			s.MaxValue = nil
		}
		if r.IntN(2) == 0 {
			s.Min, s.Max = s.legacy()
		}
	}),
	"NaN as the greatest": eachStatistics(func(r *rand.Rand, s *statisticsOfChunk) {
		s.MaxValue = orNaN(s.column, s.MaxValue)
	}),
	"NaN as both": eachStatistics(func(r *rand.Rand, s *statisticsOfChunk) {
		s.MinValue, s.MaxValue = orNaN(s.column, s.MinValue), orNaN(s.column, s.MaxValue)
	}),
	"a zero of the other sign": eachStatistics(func(r *rand.Rand, s *statisticsOfChunk) {
		s.MinValue, s.MaxValue = otherZero(s.column, s.MinValue), otherZero(s.column, s.MaxValue)
	}),
	"bounds of another width": eachStatistics(func(r *rand.Rand, s *statisticsOfChunk) {
		if !s.column.Type.Variable() {
			s.MinValue, s.MaxValue = []byte{9, 9, 9}, []byte{9, 9, 9}
		}
	}),
	"shortened bounds": eachStatistics(func(r *rand.Rand, s *statisticsOfChunk) {
		if inexact := false; s.column.Type.Variable() && len(s.MinValue) > 1 &&
			len(s.MaxValue) > 1 && s.MaxValue[0] < 0xff {
			s.MinValue, s.MaxValue = s.MinValue[:1], []byte{s.MaxValue[0] + 1}
			s.IsMinValueExact, s.IsMaxValueExact = &inexact, &inexact
		}
	}),
}

// statisticsOfChunk are the statistics of a column chunk.
type statisticsOfChunk struct {
	NullCount                        *int64
	Min, Max, MinValue, MaxValue     []byte
	IsMinValueExact, IsMaxValueExact *bool

	column *schema.Column
	rows   int64
	cells  [][]byte // that are not NULL
}

// statisticsChange changes the statistics of a file with columns and batches, one in each row
// group.
type statisticsChange func(r *rand.Rand, m *metadata.FileMetaData, batches []*batch.RecordBatch)

// eachStatistics returns a change of the statistics of each column chunk.
func eachStatistics(change func(r *rand.Rand, s *statisticsOfChunk)) statisticsChange {
	return func(r *rand.Rand, m *metadata.FileMetaData, batches []*batch.RecordBatch) {
		for g, group := range m.RowGroups {
			for i, c := range group.Columns {
				s := c.MetaData.Statistics
				b := batches[g]
				of := &statisticsOfChunk{NullCount: s.NullCount, MinValue: s.MinValue, MaxValue: s.MaxValue,
					column: &b.Schema[i], rows: int64(b.Len)}
				for k := range b.Len {
					if cell := b.Columns[i].Cell(k); cell != nil {
						of.cells = append(of.cells, cell)
					}
				}
				change(r, of)
				s.NullCount, s.Min, s.Max, s.MinValue, s.MaxValue = of.NullCount, of.Min,
					of.Max, of.MinValue, of.MaxValue
				s.IsMinValueExact, s.IsMaxValueExact = of.IsMinValueExact, of.IsMaxValueExact
			}
		}
	}
}

// otherWriter returns a change that also names another writer.
func otherWriter(name string, change statisticsChange) statisticsChange {
	return func(r *rand.Rand, m *metadata.FileMetaData, batches []*batch.RecordBatch) {
		m.CreatedBy = &name
		change(r, m, batches)
	}
}

// withoutOrders returns a change that also removes the orders of columns.
func withoutOrders(change statisticsChange) statisticsChange {
	return func(r *rand.Rand, m *metadata.FileMetaData, batches []*batch.RecordBatch) {
		m.ColumnOrders = nil
		change(r, m, batches)
	}
}

// legacy returns bounds as old writers have computed them: integers and bytes are signed. None if a
// column has no others.
func (s *statisticsOfChunk) legacy() (min, max []byte) {
	if s.MinValue == nil {
		return nil, nil
	}
	switch c := s.column; {
	case c.Type.Variable():
		signed := func(a, b []byte) int {
			return slices.CompareFunc(a, b, func(x, y byte) int { return int(int8(x)) - int(int8(y)) })
		}
		return slices.MinFunc(s.cells, signed), slices.MaxFunc(s.cells, signed)
	case c.Type == schema.Uint64:
		signed := func(a, b []byte) int {
			return batch.Compare(schema.Int64, a, b)
		}
		return slices.MinFunc(s.cells, signed), slices.MaxFunc(s.cells, signed)
	}
	return s.MinValue, s.MaxValue
}

func orNaN(c *schema.Column, bound []byte) []byte {
	switch {
	case bound == nil:
	case c.Type == schema.Float:
		return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(math.NaN())))
	case c.Type == schema.Double:
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.NaN()))
	}
	return bound
}

func otherZero(c *schema.Column, bound []byte) []byte {
	if c.Type != schema.Float && c.Type != schema.Double || bound == nil {
		return bound
	}
	out := slices.Clone(bound)
	out[len(out)-1] ^= 0x80
	if slices.Max(bound[:len(bound)-1]) > 0 || bound[len(bound)-1]&^0x80 != 0 {
		return bound // no zero
	}
	return out
}

// Statistics of any writer never exclude a row that matches: the rows equal the rows of the same
// file without statistics.
func TestStatisticsNeverExcludeRows(t *testing.T) {
	var columns []schema.Column
	for _, name := range []string{"bool", "int8", "uint8", "int32", "uint32", "int64", "uint64", "float", "double",
		"string", "binary", "date", "timestamp", "decimal(9,4)", "decimal(18,2)", "decimal(38,3)"} {
		columns = append(columns, column(t, name, name), column(t, name+"?", name))
		columns[len(columns)-1].Nullable = true
	}
	skipped := 0
	for seed := range uint64(4) {
		r := values.NewRand(seed)
		var batches []*batch.RecordBatch
		const group = 40
		for range 5 {
			b := batch.New(columns, group)
			for i := range columns {
				few := [][]byte{randomCell(r, &columns[i]), randomCell(r, &columns[i]), randomCell(r, &columns[i])}
				if r.IntN(8) == 0 && columns[i].Nullable {
					few = [][]byte{nil}
				}
				for k := range group {
					setCell(b.Columns[i], k, few[r.IntN(len(few))])
				}
			}
			batches = append(batches, b)
		}
		all := batches
		_, data := writeBatches(t, columns, ParquetOptions{RowGroupRows: group}, cloned(batches))
		plain := openedParquet(t, changed(t, data, func(m *metadata.FileMetaData) {
			for _, g := range m.RowGroups {
				for _, c := range g.Columns {
					c.MetaData.Statistics = nil
				}
			}
		}))
		variants := map[string]*File{}
		for _, name := range slices.Sorted(maps.Keys(statisticsVariants)) {
			change := statisticsVariants[name]
			variants[name] = openedParquet(t, changed(t, data, func(m *metadata.FileMetaData) {
				change(r, m, all)
			}))
		}
		for i := range columns {
			c := &columns[i]
			for range 4 {
				cell := all[r.IntN(len(all))].Columns[i].Cell(r.IntN(group))
				if cell == nil || r.IntN(3) == 0 {
					for cell = randomCell(r, c); cell == nil; {
						cell = randomCell(r, c)
					}
				}
				predicates := []oribi.Predicate{oribi.IsNull(c.Name), oribi.NotNull(c.Name),
					oribi.Eq(c.Name, oribi.Cell(cell)), oribi.Ne(c.Name, oribi.Cell(cell)),
					oribi.Lt(c.Name, oribi.Cell(cell)), oribi.Le(c.Name, oribi.Cell(cell)), oribi.Gt(c.Name,
						oribi.Cell(cell)), oribi.Ge(c.Name, oribi.Cell(cell))}
				p := predicates[r.IntN(len(predicates))]
				o := ReadOptions{Where: []oribi.Predicate{p}, Columns: []string{c.Name}}
				want := fileRows(t, plain, o)
				for name, f := range variants {
					got := fileRows(t, f, o)
					must.Equal(t, got, want, seed, name, p)
				}
				if len(want) < 5*group {
					skipped++
				}
			}
		}
	}
	if skipped < 60 {
		t.Errorf("only %d predicates exclude rows", skipped)
	}
}

// setCell sets a cell of a vector.
func setCell(v *batch.Vector, i int, cell []byte) {
	switch {
	case cell == nil:
		v.NeedPresent().Clear(i)
	case v.Type.Variable():
		v.Bytes[i] = cell
	default:
		copy(v.Data[i*v.Type.Width():], cell)
	}
}

// cloned returns copies of batches, which a writer may change.
func cloned(batches []*batch.RecordBatch) []*batch.RecordBatch {
	var out []*batch.RecordBatch
	for _, b := range batches {
		c := batch.New(b.Schema, 0)
		for i, v := range b.Columns {
			c.Columns[i].AppendSelected(v, b.Selection, 0, b.Len)
		}
		c.Len = b.Len
		c.Selection = c.Selection.Resize(b.Len)
		c.Selection.SetRange(0, b.Len)
		out = append(out, c)
	}
	return out
}

// Counts of NULLs by other writers do not exclude row groups, since some writers count wrongly.
// Bounds in the order of the type do: the column chunks of excluded row groups are not read.
func TestBoundsOfOtherWritersSkipRowGroups(t *testing.T) {
	columns := []schema.Column{{Name: "k", Type: schema.Int64}, {Name: "u", Type: schema.Uint64},
		{Name: "s", Type: schema.String}, {Name: "d", Type: schema.Double},
		{Name: "n", Type: schema.Int64, Nullable: true}}
	var batches []*batch.RecordBatch
	for g := range 4 {
		b := batch.New(columns, 100)
		for i := range 100 {
			batch.Raw[int64](b.Columns[0])[i] = int64(g*100 + i)
			batch.Raw[int64](b.Columns[1])[i] = int64(g*100 + i)
			b.Columns[2].Bytes[i] = fmt.Appendf(nil, "%05d", g*100+i)
			batch.Values[float64](b.Columns[3])[i] = float64(g*100 + i)
			batch.Raw[int64](b.Columns[4])[i] = int64(i)
		}
		batches = append(batches, b)
	}
	_, data := writeBatches(t, columns, ParquetOptions{RowGroupRows: 100}, batches)
	old := changed(t, data, func(m *metadata.FileMetaData) {
		for _, g := range m.RowGroups {
			for _, c := range g.Columns {
				s := c.MetaData.Statistics
				s.Min, s.Max, s.MinValue, s.MaxValue = s.MinValue, s.MaxValue, nil, nil
			}
		}
		m.ColumnOrders = nil
		name := "impala version 2.6.0"
		m.CreatedBy = &name
	})
	// groups returns the number of row groups that are read.
	groups := func(data []byte, p oribi.Predicate) (n int) {
		f, rows := opened(t, "parquet", data, nil, ReadOptions{Where: []oribi.Predicate{p}})
		defer f.Close()
		defer rows.Release()
		for range rows.Batches() {
		}
		in := must.Get(f.content.read(&rows.request, false))(t)
		defer in.close()
		for g := range in.(*parquetReader).in.NumRowGroups() {
			if in.(*parquetReader).mayMatch(g) {
				n++
			}
		}
		return n
	}
	for name, test := range map[string]struct {
		data []byte
		p    oribi.Predicate
		want int
	}{
		"keys": {data, oribi.Eq("k", 150), 1}, "unsigned": {data, oribi.Lt("u", uint64(150)), 2},
		"strings": {data, oribi.Ge("s", "00300"), 1},
		"floats":  {data, oribi.Eq("d", 150.0), 1}, "NULLs": {data, oribi.IsNull("n"), 0},
		"NULLs of a column without": {old, oribi.IsNull("k"), 0},
		"old keys":                  {old, oribi.Eq("k", 150), 1}, "old floats": {old, oribi.Eq("d", 150.0), 1},
		"old unsigned": {old, oribi.Lt("u", uint64(150)), 4},
		"old strings":  {old, oribi.Ge("s", "00300"), 4}, "NULLs of another writer": {old, oribi.IsNull("n"), 4},
		"others of it": {old, oribi.NotNull("n"), 4},
	} {
		must.Equal(t, groups(test.data, test.p), test.want, name)
	}
}

// Column chunks whose position, path, and type disagree are damage; a footer of the future, values
// in another file, and codecs that there are not are not supported, of a column where it is one.
func TestChunksMustFitTheSchema(t *testing.T) {
	columns := []schema.Column{{Name: "k", Type: schema.Int64}, {Name: "a", Type: schema.Int32},
		{Name: "b", Type: schema.Int32}}
	_, data := writeBatches(t, columns, ParquetOptions{}, []*batch.RecordBatch{batch.New(columns, 10)})
	other := "other.parquet"
	for name, test := range map[string]struct {
		change func(m *metadata.FileMetaData)
		want   error
		column string
		text   string
	}{
		"swapped chunks": {func(m *metadata.FileMetaData) {
			c := m.RowGroups[0].Columns
			c[1], c[2] = c[2], c[1]
		}, ErrCorrupt, "a", `is one of column "b"`},
		"another path": {func(m *metadata.FileMetaData) {
			m.RowGroups[0].Columns[2].MetaData.PathInSchema = []string{"b", "c"}
		}, ErrCorrupt, "b", `"b.c"`},
		"another type": {func(m *metadata.FileMetaData) {
			m.RowGroups[0].Columns[1].MetaData.Type = m.RowGroups[0].Columns[0].MetaData.Type
		}, ErrCorrupt, "a", "INT64 in a column of type INT32"},
		"a chunk too few": {func(m *metadata.FileMetaData) {
			m.RowGroups[0].Columns = m.RowGroups[0].Columns[:2]
		}, ErrCorrupt, "", "2 column chunks for 3 columns"},
		"no metadata": {func(m *metadata.FileMetaData) {
			m.RowGroups[0].Columns[1].MetaData = nil
		}, ErrCorrupt, "a", "no metadata"},
		"another file": {func(m *metadata.FileMetaData) {
			m.RowGroups[0].Columns[1].FilePath = &other
		}, ErrUnsupported, "", "other.parquet"},
		"another version": {func(m *metadata.FileMetaData) {
			m.FileMetaData.Version = 3
		}, ErrUnsupported, "", "version 3"},
	} {
		data := changed(t, data, test.change)
		_, err := OpenParquet(bytes.NewReader(data), int64(len(data)), OpenOptions{})
		var bad *ColumnError
		if !errors.Is(err, test.want) || !strings.Contains(fmt.Sprint(err), test.text) {
			t.Errorf("%s: %v", name, err)
		} else if errors.As(err, &bad); test.column != "" && (bad == nil || bad.Column != test.column) {
			t.Errorf("%s: %v, want it in column %q", name, err, test.column)
		}
	}
	for name, change := range map[string]func(m *metadata.FileMetaData){
		"LZO":                 func(m *metadata.FileMetaData) { m.RowGroups[0].Columns[1].MetaData.Codec = 3 },
		"unknown codec 99":    func(m *metadata.FileMetaData) { m.RowGroups[0].Columns[1].MetaData.Codec = 99 },
		"unknown encoding 77": func(m *metadata.FileMetaData) { m.RowGroups[0].Columns[1].MetaData.Encodings[0] = 77 },
		"the physical type 12": func(m *metadata.FileMetaData) {
			*m.FileMetaData.Schema[2].Type = 12
			m.RowGroups[0].Columns[1].MetaData.Type = 12
		},
	} {
		data := changed(t, data, change)
		f, err := OpenParquet(bytes.NewReader(data), int64(len(data)), OpenOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if r := f.Definition().Refused; len(r) != 1 || r[0].Column != "a" || !errors.Is(r[0], ErrUnsupported) ||
			!strings.Contains(r[0].Error(), name) {
			t.Errorf("%s: refused %v", name, r)
		}
		f.Close()
		must.Equal(t, len(parquetRows(t, data, ReadOptions{Columns: []string{"k", "b"}})), 10, name)
	}
}
