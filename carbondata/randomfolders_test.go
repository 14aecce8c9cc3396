package carbondata

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi/batch"
)

// randomFolder is a folder of ours with the rows that were written to it.
type randomFolder struct {
	columns []Column
	options WriterOptions
	rows    [][]any // in the order of their Append
	dir     string
}

// randomFolders calls f with n folders: random columns of all types, values that lead to each
// encoding, and options.
func randomFolders(t *testing.T, n int, f func(t *testing.T, folder *randomFolder)) {
	rnd := rand.New(rand.NewPCG(15, 2))
	rows := 0
	for i := range n {
		folder := newRandomFolder(rnd, i)
		rows += len(folder.rows)
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			folder.write(t)
			defer func() {
				if t.Failed() {
					t.Log(folder)
				}
			}()
			f(t, folder)
		})
	}
	t.Logf("%d folders, %d rows", n, rows)
}

func (f *randomFolder) String() string {
	types := make([]string, len(f.columns))
	for i, c := range f.columns {
		types[i] = c.Name + " " + c.TypeName()
	}
	return fmt.Sprintf("%d rows of %s, %+v", len(f.rows), strings.Join(types, ", "), f.options)
}

func newRandomFolder(rnd *rand.Rand, number int) *randomFolder {
	f := &randomFolder{}
	of := func(n int) bool { return rnd.IntN(n) == 0 }
	nested := 0
	for i := range 1 + rnd.IntN(8) {
		c := randomColumn(rnd, fmt.Sprintf("c%d", i), &nested, 0)
		c.Ordinal = i
		f.columns = append(f.columns, c)
	}
	f.options = WriterOptions{
		Compressor:        []string{"", nameSnappy, nameZstd, nameGzip}[rnd.IntN(4)],
		NoLocalDictionary: of(4),
		WrittenBy:         "test",
		Time:              time.UnixMilli(1_700_000_000_000 + int64(number)),
		Task:              fmt.Sprintf("%032x", number),
	}
	if of(2) {
		f.options.DictionaryThreshold = 1000
	}
	n := []int{1, 2, 10, 300, 3000}[rnd.IntN(5)]
	if of(30) {
		n = 32000 + rnd.IntN(3)*500
	} else if of(2) {
		f.options.PageRows = []int{1, 7, 8, 64, 1000}[rnd.IntN(5)]
		n = min(n, 300*f.options.PageRows)
	}
	if of(3) {
		f.options.BlockletBytes = int64(1 + rnd.IntN(4096))
	}
	if of(6) {
		f.options.FileBytes = int64(1 + rnd.IntN(16384))
	}
	if of(2) {
		for _, i := range rnd.Perm(len(f.columns)) {
			c := &f.columns[i]
			if sortable := []Type{String, Date, Timestamp, Boolean, Short, Int, Long}; slices.Contains(sortable, c.Type) && len(f.options.SortColumns) < 3 {
				f.options.SortColumns = append(f.options.SortColumns, c.Name)
				if c.Type == String && of(2) {
					f.options.InvertedIndex = append(f.options.InvertedIndex, c.Name)
				}
			}
		}
		if of(3) {
			f.options.SortMemory = 1 << 16
		}
	}
	values := make([]func() any, len(f.columns))
	for i, c := range f.columns {
		values[i] = randomValues(rnd, c, false)
	}
	for range n {
		row := make([]any, len(values))
		for i, value := range values {
			row[i] = value()
		}
		f.rows = append(f.rows, row)
	}
	return f
}

// randomColumn returns a column, with children down to the fourth level. There are few columns with
// children.
func randomColumn(rnd *rand.Rand, name string, nested *int, depth int) Column {
	types := []Type{String, String, Short, Int, Long, Double, Decimal, Decimal, Timestamp, Date, Boolean, Varchar, Float, Byte, Binary}
	if depth > 0 {
		types = []Type{String, Short, Int, Long, Double, Decimal, Timestamp, Date, Boolean, Float, Byte}
	}
	if *nested < 3 && depth < 3 {
		types = append(types, Array, Struct, Map)
	}
	c := Column{Name: name, Type: types[rnd.IntN(len(types))]}
	child := func(name string) Column { return randomColumn(rnd, name, nested, depth+1) }
	switch c.Type {
	case Decimal:
		c.Precision = 1 + rnd.IntN(maxPrecision)
		c.Scale = rnd.IntN(c.Precision + 1)
	case Array:
		*nested++
		c.Children = []Column{child("element")}
	case Struct:
		*nested++
		for i := range 1 + rnd.IntN(3) {
			c.Children = append(c.Children, child(fmt.Sprintf("f%d", i)))
		}
	case Map:
		*nested++
		key := Column{Name: "key", Type: []Type{String, Int, Long, Date}[rnd.IntN(4)]}
		c.Children = []Column{{Name: "pair", Type: Struct, Children: []Column{key, child("value")}}}
	}
	return c
}

// randomValues returns a function that returns values of a column. The column's values are of one
// kind, such as small numbers or long texts, with none, few, many, or only nulls.
func randomValues(rnd *rand.Rand, c Column, element bool) func() any {
	nulls := []float64{0, 0, 0.02, 0.5, 1}[rnd.IntN(5)]
	if c.Type == Varchar && !element {
		nulls = 0 // is read as ""
	}
	value := randomPresent(rnd, c)
	repeat := 0.0 // share of rows with the value of the row before
	if rnd.IntN(4) == 0 {
		repeat = 0.95
	}
	var last any
	first := true
	return func() any {
		if first || rnd.Float64() >= repeat {
			last, first = nil, false
			if rnd.Float64() >= nulls {
				last = value()
			}
		}
		return last
	}
}

func randomPresent(rnd *rand.Rand, c Column) func() any {
	switch c.Type {
	case String, Varchar:
		text := randomText(rnd)
		return func() any {
			s := text()
			if s == nullText {
				return "null"
			}
			return s
		}
	case Binary:
		text := randomText(rnd)
		return func() any { return []byte("b" + text()) } // no bytes are read as null
	case Boolean:
		most := []int{1, 2, 2}[rnd.IntN(3)]
		return func() any { return rnd.IntN(most) == 0 }
	case Float:
		number := randomFloat(rnd, 32)
		return func() any { return float32(number()) }
	case Double:
		number := randomFloat(rnd, 64)
		return func() any { return number() }
	case Decimal:
		return randomDecimal(rnd, c.Precision)
	case Array:
		return randomList(rnd, randomValues(rnd, c.Children[0], true))
	case Map:
		pair := c.Children[0].Children
		key, value := randomPresent(rnd, pair[0]), randomValues(rnd, pair[1], true)
		return randomList(rnd, func() any { return []any{key(), value()} })
	case Struct:
		fields := make([]func() any, len(c.Children))
		for i, child := range c.Children {
			fields[i] = randomValues(rnd, child, true)
		}
		return func() any {
			row := make([]any, len(fields))
			some := false
			for i, field := range fields {
				row[i] = field()
				some = some || row[i] != nil
			}
			if !some {
				return nil // is read as null
			}
			return row
		}
	}
	return randomInteger(rnd, c.Type)
}

// randomList returns lists, not of exactly one null, which are read as null.
func randomList(rnd *rand.Rand, element func() any) func() any {
	most := []int{1, 2, 4, 40}[rnd.IntN(4)]
	return func() any {
		list := []any{}
		for range rnd.IntN(most + 1) {
			list = append(list, element())
		}
		if len(list) == 1 && list[0] == nil {
			return []any{}
		}
		return list
	}
}

func randomText(rnd *rand.Rand) func() string {
	n := 0
	words := 1 + rnd.IntN(40)
	switch rnd.IntN(7) {
	case 0:
		return func() string { return fmt.Sprintf("word %d", rnd.IntN(words)) }
	case 1:
		return func() string { n++; return fmt.Sprintf("%d of many", n) }
	case 2:
		return func() string { return strings.Repeat("x", rnd.IntN(3)) }
	case 3:
		return func() string { return strings.Repeat("long ", 40+rnd.IntN(40)) + fmt.Sprint(rnd.IntN(words)) }
	case 4:
		return func() string { // any code point but surrogates
			s := make([]rune, rnd.IntN(8))
			for i := range s {
				s[i] = []rune{rnd.Int32N(0x80), 0xe0 + rnd.Int32N(0x100), 0x4e00 + rnd.Int32N(0x1000), 0x1f300 + rnd.Int32N(0x100), 0, '\\', '"'}[rnd.IntN(7)]
			}
			return string(s)
		}
	case 5:
		return func() string {
			if rnd.IntN(1000) == 0 {
				return strings.Repeat("y", 32000)
			}
			return "short"
		}
	}
	return func() string { return "always the same" }
}

// integers are the least and the most value of a type of integers, in steps.
var integers = map[Type]struct{ least, most, step int64 }{
	Byte: {math.MinInt8, math.MaxInt8, 1}, Short: {math.MinInt16, math.MaxInt16, 1}, Int: {math.MinInt32, math.MaxInt32, 1},
	Long: {math.MinInt64, math.MaxInt64, 1},
	// Years 1900 to 2100: filters of the SDK compare texts of four-digit years.
	Date: {-25567, 47482, 1}, Timestamp: {-2208988800000, 4102444800000, 1000},
}

// randomInteger returns integers, dates, or times that need a random number of bytes, or that are
// close together.
func randomInteger(rnd *rand.Rand, typ Type) func() any {
	limit := integers[typ]
	width := int64(1) << rnd.IntN(63)
	base := int64(0)
	if rnd.IntN(2) == 0 {
		base = limit.least + int64(rnd.Uint64N(uint64(limit.most)-uint64(limit.least)))
	}
	extremes := rnd.IntN(6) == 0
	return func() any {
		v := base + rnd.Int64N(width) - width/2
		if extremes {
			v = []int64{limit.least, limit.most, 0, -1, 1}[rnd.IntN(5)]
		}
		v = min(max(v, limit.least), limit.most)
		switch typ {
		case Byte:
			return int8(v)
		case Short:
			return int16(v)
		case Int:
			return int32(v)
		case Date:
			return Days(v)
		case Timestamp:
			return Micros(v * limit.step)
		}
		return v
	}
}

// randomFloat returns numbers with a fixed number of decimals, with and without a base, numbers
// with any bits, and special values.
func randomFloat(rnd *rand.Rand, bits int) func() float64 {
	decimals := math.Pow10(rnd.IntN(7))
	width := int64(1) << rnd.IntN(min(bits, 53))
	base := 0.0
	if rnd.IntN(3) == 0 {
		base = float64(rnd.Int64N(1 << 24))
	}
	switch rnd.IntN(5) {
	case 0:
		return func() float64 {
			x := math.Float64frombits(rnd.Uint64())
			if bits == 32 {
				x = float64(math.Float32frombits(rnd.Uint32()))
			}
			if math.IsNaN(x) {
				return 1
			}
			return x
		}
	case 1:
		special := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64, math.SmallestNonzeroFloat64, 0.1, 1e300}
		if bits == 32 {
			special = []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat32, math.SmallestNonzeroFloat32, 0.1, 1e30}
		}
		some := special[rnd.IntN(len(special)):]
		return func() float64 { return some[rnd.IntN(len(some))] }
	}
	return func() float64 { return base + float64(rnd.Int64N(width)-width/2)/decimals }
}

func randomDecimal(rnd *rand.Rand, precision int) func() any {
	digits := 1 + rnd.IntN(precision)
	signs := 1 + rnd.IntN(2)
	return func() any {
		v := batch.Int128Of(0)
		for range digits {
			v, _ = v.Mul10()
			v = addInt128(v, rnd.Int64N(10))
		}
		if rnd.IntN(signs) == 1 {
			v = v.Neg()
		}
		return v
	}
}

// addInt128 adds a small number to one that is not negative.
func addInt128(v batch.Int128, n int64) batch.Int128 {
	lo := v.Lo + uint64(n)
	if lo < v.Lo {
		v.Hi++
	}
	v.Lo = lo
	return v
}

func (f *randomFolder) write(t *testing.T) {
	t.Helper()
	f.dir = filepath.Join(t.TempDir(), "folder")
	w, err := Create(f.dir, f.columns, f.options)
	if err != nil {
		t.Fatalf("%v: %v", f, err)
	}
	for _, row := range f.rows {
		if err := w.Append(row); err != nil {
			w.Abort()
			t.Fatalf("%.300v: row %.300s: %v", f, fmt.Sprint(row), err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatalf("%v: %v", f, err)
	}
}

// readOurs verifies the folder and returns its rows as this package reads them: those that were
// written, in the order of the sort columns.
func (f *randomFolder) readOurs(t *testing.T) (rows [][]any) {
	t.Helper()
	table, err := Open(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	if err := table.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	for row, err := range table.Rows(t.Context(), ScanOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	was, is := texts(f.rows), texts(rows)
	const digit = 10 // of files; a file with more in its name sorts before others that come first
	if len(table.Files()) > digit {
		slices.Sort(was)
		slices.Sort(is)
		compareLines(t, "rows of ours in any order", is, was)
		return rows
	}
	if len(f.options.SortColumns) == 0 {
		compareLines(t, "rows of ours", is, was)
		return rows
	}
	slices.Sort(was)
	slices.Sort(is)
	compareLines(t, "sorted rows of ours", is, was)
	for i := 1; i < len(rows); i++ {
		if f.compareKeys(rows[i-1], rows[i]) > 0 {
			t.Fatalf("row %d: %v after %v", i, rows[i], rows[i-1])
		}
	}
	return rows
}

// compareKeys compares two rows by the sort columns, nulls first.
func (f *randomFolder) compareKeys(a, b []any) int {
	for _, name := range f.options.SortColumns {
		i := slices.IndexFunc(f.columns, func(c Column) bool { return c.Name == name })
		var c int
		switch x, y := a[i], b[i]; {
		case x == nil || y == nil:
			c = cmp.Compare(b2i(x != nil), b2i(y != nil))
		default:
			c = comparePlain(x, y)
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// texts returns rows as the SDK's reader prints them.
func texts(rows [][]any) []string {
	lines := make([]string, len(rows))
	for i, row := range rows {
		lines[i] = string(appendJSON(nil, row))
	}
	return lines
}

func compareLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("%s: row %d of %d: %.300s\nwant %.300s", what, i, len(want), got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows, want %d", what, len(got), len(want))
	}
}

// TestWriterSeparatesChildrenOfOneName writes children of one name and several types: the SDK reads
// wrong values of those that share an ID.
func TestWriterSeparatesChildrenOfOneName(t *testing.T) {
	leaf := func(name string, typ Type) Column { return Column{Name: name, Type: typ} }
	inner := Column{Name: "x", Type: Struct, Children: []Column{leaf("x", Double), leaf("only", Int)}}
	list := Column{Name: "list", Type: Array, Children: []Column{leaf("", Int)}}
	f := &randomFolder{columns: []Column{leaf("y", Int), {Name: "s", Type: Struct, Children: []Column{leaf("y", Date), inner}}, list}}
	f.rows = [][]any{{int32(1), []any{Days(-25567), []any{1.5, int32(2)}}, []any{int32(3)}}}
	f.write(t)
	f.readOurs(t)
	table, err := Open(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	var got []string
	var add func(columns []Column)
	add = func(columns []Column) {
		for _, c := range columns {
			got = append(got, c.ID)
			add(c.Children)
		}
	}
	add(table.Schema())
	if want := []string{"y", "s", "s.y", "s.x", "s.x.x", "only", "list", "list"}; !slices.Equal(got, want) {
		t.Errorf("IDs %q, want %q", got, want)
	}
}
