package carbondata

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/carbondata/internal/thrift"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// TestBoundsContainTheValues decodes each page of the golden folders and compares its values with
// the bounds of page and blocklet that filters use.
func TestBoundsContainTheValues(t *testing.T) {
	used := map[Type]int{}
	smallFolders(t, func(t *testing.T, g goldenFolder, table *Table) {
		s := must.Get(table.pages(ScanOptions{}))(t)
		for {
			more := must.Get(s.next(t.Context()))(t)
			if !more {
				return
			}
			for _, c := range s.columns {
				typ, values := testedType(c.column)
				if !values || c.cells == nil {
					continue
				}
				v := &batch.Vector{Type: typ}
				c.begin(v, s.rows)
				must.Do(t, c.fill(v, 0, 0, s.rows))
				level := "page"
				r, ok := c.cells.chunk.pages[s.page].bounds.rangeOf(0, c.cells.column, typ)
				for range 2 {
					for i := range s.rows {
						cell := v.Cell(i)
						if !ok || cell == nil {
							continue
						}
						used[c.column.Type]++
						if batch.Compare(typ, cell, r.min) < 0 || batch.Compare(typ, cell, r.max) > 0 {
							t.Errorf("%s: column %q: row %d of page %d in blocklet %d: %x is not in [%x, %x]", level,
								c.column.Name, i, s.page, s.blocklet, cell, r.min, r.max)
							break
						}
					}
					level = "blocklet"
					r, ok = s.file.blocklets[s.blocklet].bounds.rangeOf(c.cells.column.first, c.cells.column, typ)
				}
			}
		}
	})
	for typ, name := range typeNames {
		switch typ {
		case Float, Array, Struct, Map:
			must.Equal(t, used[typ], 0, name)
		case Byte: // the SDK does not write it
		default:
			if used[typ] < 100 {
				t.Errorf("%s: only %d values compared", name, used[typ])
			}
		}
	}
}

// TestSkippedParts compares how many files, blocklets, and pages are read for filters.
func TestSkippedParts(t *testing.T) {
	for _, c := range []struct {
		folder, filter string
		want           ScanStats
	}{
		{"blocklets", `["id", "=", 777]`, ScanStats{1, 10, 10, 1, 1, 1}},
		{"blocklets", `["not", ["id", ">=", 5]]`, ScanStats{1, 10, 10, 1, 1, 1}},
		{"pages-many", `["a", "<", 120]`, ScanStats{1, 1, 78, 1, 1, 2}},
		{"pages-many", `["and", ["a", ">=", 3333], ["not", ["a", ">", 3340]]]`, ScanStats{1, 1, 78, 1, 1, 1}},
		{"pages-many", `["a", "notnull"]`, ScanStats{1, 1, 78, 1, 1, 78}},
		{"pages-many", `["b", "=", "b40x"]`, ScanStats{1, 1, 78, 1, 1, 0}},
		{"files-three-tasks", `["id", "in", [5, 6]]`, ScanStats{3, 3, 9, 1, 1, 1}},
		{"files-three-tasks", `["or", ["id", "<", 0], ["id", ">", 100000]]`, ScanStats{3, 3, 9, 0, 0, 0}},
		{"string-blocklets", `["a", "<", "b"]`, ScanStats{1, 5, 5, 0, 0, 0}},
		{"string-dict", `["s", "=", "n"]`, ScanStats{1, 1, 5, 1, 1, 0}},
	} {
		table := must.Get(Open(goldenDir(t) + "/" + c.folder))(t)
		defer table.Close()
		f := must.Get(ParseFilter([]byte(c.filter)))(t)
		var got ScanStats
		rows := scanRows(t, table, ScanOptions{Filter: f, Stats: &got})
		must.Equal(t, got, c.want, c.folder, c.filter, len(rows))
	}
}

// TestColumnsOfOtherPagesAreNotRead damages the pages of a column in which a filter on another
// column selects no rows.
func TestColumnsOfOtherPagesAreNotRead(t *testing.T) {
	data := goldenFile(t, "pages-many")
	f := must.Get(OpenFile(&block.Memory{Bytes: data}))(t)
	table := &Table{columns: f.Schema(), files: []tableFile{{File: f}}}
	must.Do(t, table.match())
	c := must.Get(f.readChunk(&f.blocklets[0], f.columns[slices.IndexFunc(f.columns, func(c Column) bool {
		return c.Name == "c"
	})].first, &memory{left: 1 << 20}))(t)
	for i, h := range c.pages {
		if i != 33 {
			data[h.offset] ^= 1 // the length of the uncompressed page
		}
	}
	read := func(o ScanOptions) (n int, err error) {
		for _, err = range table.Rows(t.Context(), o) {
			if err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	}
	must.Fail(t, must.Err(read(ScanOptions{})), ErrCorrupt, "a read of all columns")
	must.Equal(t, must.Get(read(ScanOptions{Columns: []string{"b", "a"}}))(t), 7777, "a read of other columns")
	few := And(Ge("a", 3333), Le("a", 3340))
	for _, o := range []ScanOptions{{Filter: few}, {Filter: few, noPruning: true}} {
		must.Equal(t, must.Get(read(o))(t), 8, o.noPruning)
	}
}

// TestBoundsOfDoublesAreWidened reads DOUBLEs that are not in the bounds of their page: a maximum
// that the codec with delta truncates, and numbers that it rounds.
func TestBoundsOfDoublesAreWidened(t *testing.T) {
	le := binary.LittleEndian
	for _, x := range []struct {
		lo, hi, read float64
		enc          encoding
		decimals     int
		stored       int64
	}{
		{4.35, 4.35, 4.34, encAdaptiveFloatDel, 2, 0},
		{3.5, 3.85025607532585e15, 3.8502560753258495e15, encAdaptiveFloat, 1, 38502560753258496},
		{3.85025607532585e15, 3.9e15, 3.8502560753258495e15, encAdaptiveFloat, 1, 38502560753258496},
	} {
		c := &Column{Type: Double}
		n := must.Get(newNumbers(c, x.enc,
			encoderMeta{schema: inDouble, store: inLong, decimals: x.decimals, maxFloat: x.hi}))(t)
		n.data = le.AppendUint64(nil, uint64(x.stored))
		v, err := n.value(0)
		if v != x.read || err != nil {
			t.Fatalf("%v, want %v: %v", v, x.read, err)
		}
		bound := func(x float64) [][]byte { return [][]byte{binary.BigEndian.AppendUint64(nil, math.Float64bits(x))} }
		r, ok := (&bounds{min: bound(x.lo), max: bound(x.hi), present: []bool{true}}).rangeOf(0, c, schema.Double)
		cell, _, _ := filterCell(c, schema.Double, v)
		if !ok || batch.Compare(schema.Double, cell, r.min) < 0 || batch.Compare(schema.Double, cell, r.max) > 0 {
			t.Errorf("%v is not in [%x, %x]", v, r.min, r.max)
		}
	}
}

// TestUnusableBounds has bounds that must not be used, next to similar bounds that are used.
func TestUnusableBounds(t *testing.T) {
	flagged := func(present bool) []bool { return []bool{present} }
	double := func(x float64) []byte {
		b, _, _ := filterCell(&Column{Type: Double}, schema.Double, x)
		for i := range 4 {
			b[i], b[7-i] = b[7-i], b[i]
		}
		return b
	}
	text := func(s string) []byte { return []byte(s) }
	array := Column{Type: Array, Children: []Column{{Type: Int}}}
	for name, c := range map[string]struct {
		column  Column
		lo, hi  []byte
		present []bool
		want    bool
	}{
		"string":                        {Column{Type: String}, text("a"), text("b"), flagged(true), true},
		"string without flags":          {Column{Type: String}, text("a"), text("b"), nil, true},
		"string, not present":           {Column{Type: String}, text("a"), text("b"), flagged(false), false},
		"string, empty minimum":         {Column{Type: String}, text(""), text("b"), flagged(true), true},
		"string, empty, without flags":  {Column{Type: String}, text(""), text("b"), nil, false},
		"string, empty maximum":         {Column{Type: String}, text(""), text(""), flagged(true), false},
		"string, minimum above maximum": {Column{Type: String}, text("b"), text("a"), flagged(true), false},
		"timestamp": {Column{Type: Timestamp, dimension: true},
			text("\x80\x00\x00\x00\x00\x00\x00\x00"), text("\x80\x00\x00\x00\x00\x00\x00\x01"), nil, true},
		"timestamp, empty minimum": {Column{Type: Timestamp, dimension: true}, nil,
			text("\x80\x00\x00\x00\x00\x00\x00\x01"), flagged(true), false},
		"timestamp out of the range": {Column{Type: Timestamp, dimension: true},
			text("\x00\x00\x00\x00\x00\x00\x00\x00"), text("\x80\x00\x00\x00\x00\x00\x00\x01"), flagged(true), false},
		"boolean":          {Column{Type: Boolean}, text("\x00"), text("\x01"), flagged(true), true},
		"boolean, a digit": {Column{Type: Boolean}, text("0"), text("1"), flagged(true), false},
		"boolean, sorted": {Column{Type: Boolean, dimension: true}, text("\x00"),
			text("\x01"), flagged(true), false},
		"double":                        {Column{Type: Double}, double(1), double(2), flagged(true), true},
		"double, NaN":                   {Column{Type: Double}, double(1), double(math.NaN()), flagged(true), false},
		"double, infinite":              {Column{Type: Double}, double(1), double(math.Inf(1)), flagged(true), false},
		"double, minimum above maximum": {Column{Type: Double}, double(1.1), double(1), flagged(true), false},
		"double, 4 bytes":               {Column{Type: Double}, double(1)[:4], double(2)[:4], flagged(true), false},
		"float":                         {Column{Type: Float}, double(1), double(2), flagged(true), false},
		"int, 4 bytes": {Column{Type: Int}, text("\x00\x00\x00\x00"),
			text("\x00\x00\x00\x01"), flagged(true), false},
		"short out of the range": {Column{Type: Short}, text("\x00\x00\x00\x00\x00\x00\x00\x00"),
			text("\x00\x00\x00\x00\x00\x01\x00\x00"), flagged(true), false},
		"decimal of another scale": {Column{Type: Decimal, Precision: 4, Scale: 1}, text("\x02\x00"),
			text("\x02\x01"), flagged(true), false},
		"array": {array, text("[B@2543c405"), text("[B@2543c406"), flagged(true), false},
		"a child": {Column{Type: Int, nested: true}, text("\x00\x00\x00\x00\x00\x00\x00\x00"),
			text("\x00\x00\x00\x00\x00\x00\x00\x00"), flagged(true), false},
	} {
		b := bounds{min: [][]byte{c.lo}, max: [][]byte{c.hi}, present: c.present}
		typ, _ := testedType(&c.column)
		if _, ok := b.rangeOf(0, &c.column, typ); ok != c.want {
			t.Errorf("%s: used: %v, want %v", name, ok, c.want)
		}
	}
}

// TestJudge compares verdicts for a range of integers with all values in it, and nulls.
func TestJudge(t *testing.T) {
	cell := func(x int) []byte { return []byte{byte(x)} }
	for op := batch.Eq; op <= batch.NotNull; op++ {
		for value := -1; value <= 4; value++ {
			p := batch.Predicate{Type: schema.Int8, Op: op}
			if op <= batch.In {
				p.Values = [][]byte{cell(value)}
			}
			must.Do(t, p.Prepare())
			for lo := 0; lo <= 3; lo++ {
				for hi := lo; hi <= 3; hi++ {
					for _, n := range []nulls{someNulls, noNulls, onlyNulls} {
						passed, total := 0, 0
						if n != onlyNulls {
							for x := lo; x <= hi; x++ {
								if total++; p.EvalCell(cell(x)) {
									passed++
								}
							}
						}
						if n != noNulls {
							if total++; p.EvalCell(nil) {
								passed++
							}
						}
						v := judge(&p, cellRange{cell(lo), cell(hi)}, true, n)
						if v == none && passed > 0 || v == all && passed < total {
							t.Errorf("%v %d in [%d, %d], nulls %d: verdict %d, %d of %d pass", op,
								value, lo, hi, n, v, passed, total)
						}
						exact := op != batch.In && (op < batch.IsNull || n != someNulls)
						if exact && v == some && (passed == 0 || passed == total && n == noNulls) {
							t.Errorf("%v %d in [%d, %d], nulls %d: no verdict, %d of %d pass", op,
								value, lo, hi, n, passed, total)
						}
					}
				}
			}
		}
	}
}

// FuzzBounds parses bounds and uses them as bounds of a column of any type.
func FuzzBounds(f *testing.F) {
	f.Add(uint8(String), uint8(0), []byte("\x19\x18\x06robot0\x19\x18\x07robot99\x00"))
	f.Add(uint8(Decimal), uint8(20), []byte("\x19\x18\x02\x00\x01\x19\x18\x02\x00\x07\x19\x11\x01\x00"))
	f.Add(uint8(Timestamp), uint8(1),
		[]byte("\x19\x18\x08\x80\x00\x00\x00\x00\x00\x00\x00\x19\x18\x08\x80\x00\x00\x00\x00\x00\x00\x01\x00"))
	fuzztest.Run(f, func(t *testing.T, typ, precision uint8, data []byte) {
		r := thrift.Reader{In: data}
		b := readBounds(&r, thrift.Struct, 1)
		if !typed(t, r.Err) || !typed(t, b.check(1)) {
			return
		}
		c := Column{Type: Type(typ), Precision: 1 + int(precision)%38, Scale: 1, dimension: precision%2 == 1}
		of, values := testedType(&c)
		if !values {
			return
		}
		if r, ok := b.rangeOf(0, &c, of); ok &&
			(len(r.min) != of.Width() && !of.Variable() || batch.Compare(of, r.min, r.max) > 0) {
			t.Fatalf("%v: [%x, %x]", c.Type, r.min, r.max)
		}
	})
}
