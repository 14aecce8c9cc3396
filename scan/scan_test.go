package scan

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// columns have fixed widths, byte strings and NULLs.
var columns = []schema.Column{
	{ID: 0, Name: "n", Type: schema.Int64},
	{ID: 1, Name: "s", Type: schema.String, Nullable: true},
	{ID: 2, Name: "b", Type: schema.Int8, Nullable: true},
}

// allColumns requests all columns with keys; allDescending does so in descending order.
var (
	allColumns    = request(Options{Columns: []int{0, 1, 2}, Keys: true})
	allDescending = request(Options{Columns: []int{0, 1, 2}, Keys: true, Descending: true})
)

// withoutKeys returns r without keys.
func withoutKeys(r *Request) *Request {
	o := r.o
	o.Keys = false
	return request(o)
}

// request returns a request on columns.
func request(o Options) *Request {
	s, err := schema.New(slices.Clone(columns), 1)
	if err != nil {
		panic(err)
	}
	o.Schema = s
	r, err := NewRequest(o)
	if err != nil {
		panic(err)
	}
	return r
}

// row is a row of the result: its encoded key and cells, nil for NULL.
type row struct {
	key   []byte
	cells [][]byte
}

func (r row) String() string { return fmt.Sprintf("%x %x", r.key, r.cells) }

func (r row) equal(o row) bool {
	return bytes.Equal(r.key, o.key) && slices.EqualFunc(r.cells, o.cells, func(a, b []byte) bool {
		return (a == nil) == (b == nil) && bytes.Equal(a, b)
	})
}

// rowOf returns row number n: keys have different lengths and ascend with n.
func rowOf(n int) row {
	key := binary.BigEndian.AppendUint32(nil, uint32(n))
	key = append(key, bytes.Repeat([]byte{7}, n%3)...)
	cells := [][]byte{binary.LittleEndian.AppendUint64(nil, uint64(n)), fmt.Append(nil, "text ", n), {byte(n)}}
	if n%5 == 0 {
		cells[1] = nil
	}
	if n%7 == 0 {
		cells[2] = nil
	}
	return row{key, cells}
}

// fake returns rows in batches and overwrites each batch at the next call of Next, as readers of
// files do.
type fake struct {
	rows       []row
	descending bool       // the order of rows
	sizes      func() int // rows of the next batch that are selected, at least 1
	noise      func() bool
	failAt     int  // index of the call of Next that fails; −1 = none
	failSearch bool // a search after failAt calls of Next fails instead
	err        error

	lazy   bool // it is the input of a part that was not opened yet
	steps  int
	at     int
	b      *batch.RecordBatch
	keys   [][]byte
	ended  bool
	closed int
}

func (f *fake) Next() bool {
	f.spoil()
	if f.steps == f.failAt && !f.failSearch {
		f.err = errFake
	}
	if f.err != nil || f.closed > 0 || f.at >= len(f.rows) {
		f.ended = true
		return false
	}
	f.steps++
	end := min(len(f.rows), f.at+f.sizes())
	b := batch.New(columns, 0)
	f.keys = nil
	var selected []bool
	add := func(r row, wanted bool) {
		for i, c := range r.cells {
			b.Columns[i].AppendCell(c)
		}
		f.keys = append(f.keys, r.key)
		selected = append(selected, wanted)
	}
	for _, r := range f.rows[f.at:end] {
		for f.noise() { // rows that are not selected, with a key or without
			unwanted := rowOf(1 << 20)
			if f.noise() {
				unwanted.key = nil
			}
			add(unwanted, false)
		}
		add(r, true)
	}
	for f.noise() {
		add(row{nil, rowOf(0).cells}, false)
	}
	b.Len = len(selected)
	b.Selection = batch.MakeBitmap(b.Len)
	for i, wanted := range selected {
		if wanted {
			b.Selection.Set(i)
		}
	}
	f.b, f.at = b, end
	return true
}

// spoil overwrites the memory of the last batch; byte strings and the bytes of keys stay valid.
func (f *fake) spoil() {
	if f.b == nil {
		return
	}
	for _, v := range f.b.Columns {
		for i := range v.Data {
			v.Data[i] = 0xee
		}
		clear(v.Bytes)
		v.Present = nil
	}
	for i := range f.b.Selection {
		f.b.Selection[i] = 0x5555555555555555
	}
	clear(f.keys)
	f.b = nil
}

func (f *fake) Batch() *batch.RecordBatch { return f.b }
func (f *fake) Keys() [][]byte            { return f.keys }

// searching is a fake that finds keys instead of returning all of them.
type searching struct{ *fake }

func (s *searching) Keys() [][]byte { return nil }

func (s *searching) KeyAt(i int) ([]byte, error) { return s.keys[i], s.searchErr() }

func (s *searching) Search(from int, key []byte) (int, error) {
	i := from
	for i < len(s.keys) && (!s.b.Selection.Get(i) || before(s.keys[i], key, s.descending)) {
		i++
	}
	return i, s.searchErr()
}

// searchErr returns the error of a search.
func (s *searching) searchErr() error {
	if s.failSearch && s.steps == s.failAt {
		s.err = errFake
	}
	return s.err
}

func (f *fake) Seek(key []byte) error {
	f.spoil()
	for f.at < len(f.rows) && before(f.rows[f.at].key, key, f.descending) {
		f.at++
	}
	return nil
}

func (f *fake) Close() error {
	f.closed++
	return f.err
}

var errFake = errors.New("injected read error")

// read reads all rows of an iterator and checks each batch. withKeys is false if rows may lack
// keys.
func read(t *testing.T, it Iterator, withKeys bool) []row {
	t.Helper()
	var out []row
	for rows := range batches(t, it, withKeys) {
		out = append(out, rows...)
	}
	return out
}

// batches is read batch by batch.
func batches(t *testing.T, it Iterator, withKeys bool) iter.Seq[[]row] {
	t.Helper()
	return func(yield func([]row) bool) {
		for it.Next() {
			if !yield(rowsOf(t, it, withKeys)) {
				return
			}
		}
	}
}

// rowsOf returns the rows of the current batch, which it checks.
func rowsOf(t *testing.T, it Iterator, withKeys bool) []row {
	t.Helper()
	var out []row
	b, keys := it.Batch(), it.Keys()
	if b.Selected() == 0 || b.Selection.Count() != b.Selection.CountRange(0, b.Len) || withKeys && len(keys) != b.Len {
		t.Fatalf("batch of %d rows, %d of them selected, %d within, %d keys", b.Len, b.Selected(),
			b.Selection.CountRange(0, b.Len), len(keys))
	}
	for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
		r := row{cells: make([][]byte, len(b.Columns))}
		for c, v := range b.Columns {
			r.cells[c] = v.Cell(i)
			if !v.Type.Variable() {
				r.cells[c] = bytes.Clone(r.cells[c]) // only byte strings stay valid
			}
		}
		if withKeys {
			r.key = keys[i]
		}
		out = append(out, r)
	}
	return out
}

func compareRows(t *testing.T, got, want []row) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) {
			t.Fatalf("%d rows, want %d", len(got), len(want))
		}
		must.Equal(t, got[i].equal(want[i]), true, "row", i, "of", len(want), got[i], want[i])
	}
}

// deal distributes rows 0 to n−1 to k inputs, sometimes in long runs, and returns the inputs.
func deal(r *rand.Rand, k, n, size int) (fakes []*fake, all []row) {
	for range k {
		noise := r.IntN(3) == 0
		fakes = append(fakes, &fake{failAt: -1, sizes: func() int {
			return 1 + r.IntN(size)
		}, noise: func() bool { return noise && r.IntN(3) == 0 }})
	}
	to, stretch := 0, 1+r.IntN(2)*r.IntN(300)
	for i := range n {
		if i%stretch == 0 {
			to = r.IntN(k)
		}
		fakes[to].rows = append(fakes[to].rows, rowOf(i))
		all = append(all, rowOf(i))
	}
	return fakes, all
}

// descend reverses the order of the inputs' rows and of all.
func descend(fakes []*fake, all []row) {
	slices.Reverse(all)
	for _, f := range fakes {
		f.descending = true
		slices.Reverse(f.rows)
	}
}

func iterators(fakes []*fake) []Iterator {
	var out []Iterator
	for _, f := range fakes {
		out = append(out, f)
	}
	return out
}

// inputsOf returns iterators for some fakes and parts for the others. If lazy is set, most of them
// are searching. onOpen is called with the beginning of a part, in the order of the scan, when it
// is opened.
func inputsOf(r *rand.Rand, fakes []*fake, lazy bool, onOpen func(begin []byte)) (inputs []Iterator, parts []Part) {
	for _, f := range fakes {
		var it Iterator = f
		if lazy && r.IntN(4) > 0 {
			it = &searching{f}
		}
		if len(f.rows) == 0 || r.IntN(3) == 0 {
			inputs = append(inputs, it)
			continue
		}
		first, last := f.rows[0].key, f.rows[len(f.rows)-1].key
		begin := first
		if f.descending {
			first, last = last, first
		}
		f.lazy = true
		parts = append(parts, Part{First: first, Last: last, Open: func() (Iterator, error) {
			onOpen(begin)
			f.lazy = false
			return it, nil
		}})
	}
	r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return inputs, parts
}

func ignoreOpen([]byte) {}

// checkClosed checks how often the inputs were closed. Parts that were not opened were not closed.
func checkClosed(t *testing.T, fakes []*fake, want int) {
	t.Helper()
	for i, f := range fakes {
		if f.closed != want && (f.closed > 0 || !f.lazy) {
			t.Errorf("input %d was closed %d times, want %d", i, f.closed, want)
		}
	}
}

func TestMergeSorts(t *testing.T) {
	r := seedtest.Rand(t)
	rounds := 300
	if testing.Short() {
		rounds = 60
	}
	for round := range rounds {
		n, size := r.IntN(60), 8
		if round%30 == 0 {
			n, size = 20000, 6000 // more than a window
		}
		fakes, want := deal(r, 1+r.IntN(6), n, size)
		order := allColumns
		if round%2 == 1 || round%60 == 0 {
			descend(fakes, want)
			order = allDescending
		}
		lazy := r.IntN(2) == 0
		if lazy {
			order = withoutKeys(order)
		}
		var got []row
		inputs, parts := inputsOf(r, fakes, lazy, func(begin []byte) {
			// All rows before the part have been returned.
			if n := len(got); n < len(want) && before(want[n].key, begin, order.Descending()) {
				t.Errorf("round %d: the part at %x is opened before row %x is returned", round, begin, want[n].key)
			}
		})
		it := Merge(order, inputs, parts...)
		for rows := range batches(t, it, !lazy) {
			got = append(got, rows...)
		}
		must.Do(t, it.Close())
		for i := range want {
			if lazy {
				want[i].key = nil
			}
		}
		compareRows(t, got, want)
		checkClosed(t, fakes, 1)
		must.Equal(t, it.Next(), false, "Next returned true after the end")
	}
}

// Merge and Concat skip the same rows at each Seek as one sorted list does.
func TestSeekSkipsRows(t *testing.T) {
	r := seedtest.Rand(t)
	for round := range 300 {
		fakes, want := deal(r, 1+r.IntN(5), r.IntN(200), 8)
		order := allColumns
		if round%4 < 2 {
			descend(fakes, want)
			order = allDescending
		}
		lazy := round%3 == 0
		if lazy {
			order = withoutKeys(order)
		}
		inputs, parts := inputsOf(r, fakes, lazy, ignoreOpen)
		it := Merge(order, inputs, parts...)
		if round%2 == 0 {
			// The same rows, in inputs with ascending disjoint key ranges.
			var chain []Opener
			fakes = fakes[:1]
			for from, n := 0, 0; from < len(want); from += n {
				n = min(1+r.IntN(50), len(want)-from)
				f := &fake{rows: want[from : from+n], descending: order.Descending(), failAt: -1,
					sizes: fakes[0].sizes, noise: fakes[0].noise}
				chain = append(chain, func() (Iterator, error) { return f, nil })
			}
			it = Concat(order, chain...)
		}
		for {
			if r.IntN(2) == 0 {
				key := rowOf(r.IntN(220)).key
				must.Do(t, it.Seek(key))
				for len(want) > 0 && before(want[0].key, key, order.Descending()) {
					want = want[1:]
				}
			}
			if !it.Next() {
				break
			}
			sel := it.Batch().Selection
			for i := sel.Next(0); i >= 0; i = sel.Next(i + 1) {
				if n := it.Batch().Columns[0].Cell(i); len(want) == 0 || !bytes.Equal(n, want[0].cells[0]) {
					t.Fatalf("round %d: row %x, %d rows left", round, n, len(want))
				}
				want = want[1:]
			}
		}
		must.Do(t, it.Close())
		must.Equal(t, len(want), 0, "round", round, "rows are missing")
	}
}

func TestNewRequestRefusesSchemaMismatch(t *testing.T) {
	s := request(Options{}).Schema()
	test := func(id schema.ColumnID, typ schema.Type, prepare bool) batch.Filter {
		p := batch.Predicate{ID: id, Type: typ, Op: batch.NotNull}
		if prepare {
			must.Do(t, p.Prepare())
		}
		return batch.Not(batch.Test(p))
	}
	must.Do(t, must.Err(NewRequest(Options{Schema: s, Columns: []int{2, 2}, Filter: test(0, schema.Int64, true)})))
	for name, o := range map[string]Options{
		"no schema":              {},
		"column":                 {Schema: s, Columns: []int{3}},
		"negative column":        {Schema: s, Columns: []int{-1}},
		"predicate's ID":         {Schema: s, Filter: test(99, schema.Int64, true)},
		"predicate's type":       {Schema: s, Filter: test(0, schema.String, true)},
		"predicate not prepared": {Schema: s, Filter: test(0, schema.Int64, false)},
	} {
		must.Fail(t, must.Err(NewRequest(o)), fault.ErrSchema, name)
	}
	for name, o := range map[string]Options{"limit": {Schema: s, Limit: -1},
		"rows": {Schema: s, Rows: RowRange{From: 2, To: 1}}} {
		must.Refuse(t, must.Err(NewRequest(o)), name)
	}
}

// An output batch is full in the middle of an input's batch. If the rest of that batch precedes all
// other rows, it is the next batch.
func TestMergeContinuesMidBatch(t *testing.T) {
	whole := func() int { return 1 << 20 }
	quiet := func() bool { return false }
	a, b := &fake{failAt: -1, sizes: whole, noise: quiet}, &fake{failAt: -1, sizes: whole, noise: quiet}
	var want []row
	for i := range batch.WindowRows {
		f := []*fake{a, b}[i%2]
		f.rows = append(f.rows, rowOf(i))
		want = append(want, rowOf(i))
	}
	for i := range 1000 {
		a.rows = append(a.rows, rowOf(batch.WindowRows+i))
		want = append(want, rowOf(batch.WindowRows+i))
	}
	it := Merge(allColumns, []Iterator{a, b})
	compareRows(t, read(t, it, true), want)
	must.Do(t, it.Close())
}

// A part that Seek passes over is never opened, and an error of its Open ends the merge.
func TestMergeSkipsAndFailsToOpenParts(t *testing.T) {
	part := func(from, to int, open func() (Iterator, error)) Part {
		return Part{First: rowOf(from).key, Last: rowOf(to - 1).key, Open: open}
	}
	whole := func() int { return 1 << 20 }
	for _, r := range []*Request{allColumns, allDescending} {
		f := &fake{failAt: -1, sizes: whole, noise: func() bool { return false }, rows: []row{rowOf(10), rowOf(15)}}
		skipped, broken := part(0, 10, nil), part(20, 30, func() (Iterator, error) { return nil, errFake })
		if r.Descending() {
			descend([]*fake{f}, nil)
			skipped.Open, broken.Open = broken.Open, skipped.Open
		}
		want := f.rows[1:]
		it := Merge(r, nil, broken, skipped, part(10, 16, func() (Iterator, error) { return f, nil }))
		must.Do(t, it.Seek(want[0].key))
		compareRows(t, read(t, it, true), want)
		must.Fail(t, it.Close(), errFake, "descending", r.Descending(), "the error of the last part")
		checkClosed(t, []*fake{f}, 1)
	}
}

func TestMergeOfNoInputsIsEmpty(t *testing.T) {
	it := Merge(allColumns, nil)
	if it.Next() || it.Next() || it.Close() != nil || it.Close() != nil {
		t.Error("Next returned true")
	}
}

// Counting rows requests no columns.
func TestMergeWithoutColumns(t *testing.T) {
	fakes, want := deal(seedtest.Rand(t), 3, 50, 4)
	var inputs []Iterator
	for _, f := range fakes {
		inputs = append(inputs, bare{f})
	}
	it := Merge(request(Options{}), inputs)
	n := 0
	for it.Next() {
		n += it.Batch().Selected()
	}
	if n != len(want) || it.Close() != nil {
		t.Errorf("%d rows, want %d", n, len(want))
	}
}

// bare is a fake without columns.
type bare struct{ *fake }

func (b bare) Batch() *batch.RecordBatch {
	return &batch.RecordBatch{Len: b.fake.b.Len, Selection: b.fake.b.Selection}
}

func TestMergeClosedEarlyClosesAllInputsOnce(t *testing.T) {
	r := seedtest.Rand(t)
	for range 100 {
		fakes, _ := deal(r, 2+r.IntN(4), 40, 5)
		inputs, parts := inputsOf(r, fakes, true, ignoreOpen)
		it := Merge(withoutKeys(allColumns), inputs, parts...)
		for range r.IntN(8) {
			it.Next()
		}
		must.Do(t, errors.Join(it.Close(), it.Close()))
		checkClosed(t, fakes, 1)
		must.Equal(t, it.Next(), false, "Next returned true after Close")
	}
}

// An input's error ends the merge. Rows before it are correct, no rows follow it, and Close returns
// it.
func TestMergeReturnsInputErrors(t *testing.T) {
	r := seedtest.Rand(t)
	for range 200 {
		fakes, all := deal(r, 2+r.IntN(4), 40, 5)
		broken := fakes[r.IntN(len(fakes))]
		broken.failAt, broken.failSearch = r.IntN(4), r.IntN(2) == 0
		inputs, parts := inputsOf(r, fakes, true, ignoreOpen)
		it := Merge(withoutKeys(allColumns), inputs, parts...)
		got := read(t, it, false)
		reached := broken.err != nil
		if err := it.Close(); errors.Is(err, errFake) != reached {
			t.Fatalf("error %v, reached %t", err, reached)
		}
		if err := it.Close(); errors.Is(err, errFake) != reached {
			t.Fatalf("the second Close returned %v", err)
		}
		if !reached && len(got) != len(all) {
			t.Fatalf("%d rows without error, want %d", len(got), len(all))
		}
		for i := range all {
			all[i].key = nil
		}
		compareRows(t, got, all[:len(got)])
		checkClosed(t, fakes, 1)
	}
}

func TestMergeOfOneInputReturnsIt(t *testing.T) {
	fakes, want := deal(seedtest.Rand(t), 1, 20, 3)
	it := Merge(allColumns, iterators(fakes))
	compareRows(t, read(t, it, true), want)
	it.Close()
	must.Equal(t, fakes[0].closed, 1, "calls of Close")
}

// concatOf chains the fakes and counts those created in made.
func concatOf(fakes []*fake, made *int) Iterator {
	var makers []Opener
	for _, f := range fakes {
		makers = append(makers, func() (Iterator, error) {
			*made++
			return f, nil
		})
	}
	return Concat(allColumns, makers...)
}

func TestConcatChains(t *testing.T) {
	r := seedtest.Rand(t)
	for range 100 {
		fakes, _ := deal(r, 1+r.IntN(5), 40, 5)
		var want []row
		for _, f := range fakes {
			want = append(want, f.rows...)
		}
		made := 0
		it := concatOf(fakes, &made)
		compareRows(t, read(t, it, true), want)
		must.Do(t, it.Close())
		must.Equal(t, made, len(fakes))
		checkClosed(t, fakes, 1)
	}
}

// An iterator is created when the previous one is closed, and not at all if the caller stops
// earlier.
func TestConcatOpensInputsLazily(t *testing.T) {
	fakes := []*fake{{}, {}, {}}
	for i, f := range fakes {
		f.rows, f.failAt, f.sizes, f.noise = []row{rowOf(i)}, -1, func() int { return 1 }, func() bool { return false }
	}
	made := 0
	it := concatOf(fakes, &made)
	must.Equal(t, made, 0, "an iterator was created before the first call of Next")
	for i := range 2 {
		if !it.Next() || made != i+1 || i > 0 && fakes[i-1].closed != 1 {
			t.Fatalf("step %d: %d made, the one before closed %d times", i, made, fakes[0].closed)
		}
	}
	if err := it.Close(); err != nil || made != 2 || fakes[1].closed != 1 || fakes[2].closed != 0 {
		t.Errorf("%v, %d made", err, made)
	}
	if it.Next() || made != 2 {
		t.Error("Next returned true after Close")
	}
}

func TestConcatReturnsInputErrors(t *testing.T) {
	fakes, _ := deal(seedtest.Rand(t), 2, 20, 3)
	fakes[0].failAt = 0
	made := 0
	it := concatOf(fakes, &made)
	if got := read(t, it, true); len(got) > 0 || made != 1 || !errors.Is(it.Close(), errFake) || fakes[0].closed != 1 {
		t.Errorf("%d rows, %d made, error %v", len(got), made, it.Close())
	}
	calls := 0
	it = Concat(allColumns, func() (Iterator, error) {
		return nil, errFake
	}, func() (Iterator, error) { calls++; return fakes[1], nil })
	if it.Next() || it.Next() || !errors.Is(it.Close(), errFake) || calls != 0 {
		t.Error("continued after an iterator that could not be created")
	}
}

func TestLimitReturnsFirstRows(t *testing.T) {
	r := seedtest.Rand(t)
	for range 200 {
		fakes, all := deal(r, 1+r.IntN(3), r.IntN(40), 6)
		n := r.IntN(50)
		it := Limit(Merge(allColumns, iterators(fakes)), int64(n))
		compareRows(t, read(t, it, true), all[:min(n, len(all))])
		must.Do(t, it.Close())
		must.Equal(t, it.Next(), false, "Next returned true after the end")
		checkClosed(t, fakes, 1)
	}
}

// A scan that has reached its limit does not read on: the call of Next that would fail is never
// made.
func TestLimitStopsReading(t *testing.T) {
	f := &fake{failAt: 2, sizes: func() int { return 3 }, noise: func() bool { return false }}
	for i := range 9 {
		f.rows = append(f.rows, rowOf(i))
	}
	it := Limit(f, 6)
	if got := read(t, it, true); len(got) != 6 || f.steps != 2 || it.Close() != nil {
		t.Errorf("%d rows in %d steps, %v", len(got), f.steps, it.Close())
	}
	must.Equal(t, Limit(f, 0).Next(), false, "a limit of 0 returned a row")
}

// A merge with a limit reads few more batches of its inputs than it needs.
func TestLimitedMergeStopsReading(t *testing.T) {
	r := seedtest.Rand(t)
	for range 100 {
		k, n, size := 2+r.IntN(3), leastRows+r.IntN(300), 1+r.IntN(50)
		var fakes []*fake
		for range k {
			fakes = append(fakes, &fake{failAt: -1, sizes: func() int {
				return size
			}, noise: func() bool { return false }})
		}
		var want []row
		for i := range 3 * n {
			f := fakes[r.IntN(k)]
			f.rows = append(f.rows, rowOf(i))
			want = append(want, rowOf(i))
		}
		it := Limit(Merge(request(Options{Columns: []int{0, 1, 2}, Keys: true, Limit: int64(n)}),
			iterators(fakes)), int64(n))
		compareRows(t, read(t, it, true), want[:n])
		for i, f := range fakes {
			used := 0
			for _, row := range f.rows {
				if bytes.Compare(row.key, want[n-1].key) <= 0 {
					used++
				}
			}
			// One batch may be returned whole before all others, and one more row determines where
			// to stop.
			if most := used/size + 3; f.steps > most {
				t.Errorf("input %d: %d batches of %d rows for %d rows", i, f.steps, size, used)
			}
		}
		must.Do(t, it.Close())
	}
}

// A set of rows reads about as many rows as the limit leaves, if that is known.
func TestBatchSizesEndAtTheLimit(t *testing.T) {
	p := batch.Predicate{ID: 0, Type: schema.Int64, Op: batch.NotNull}
	must.Do(t, p.Prepare())
	for _, c := range []struct {
		o        Options
		returned int64
		want     int
	}{
		{Options{}, 0, 4096},
		{Options{Limit: 5000}, 0, 4096},
		{Options{Limit: 5000}, 4096, 904},
		{Options{Limit: 5000}, 4990, 16},
		{Options{Limit: 5000}, 5000, 4096},
		{Options{Limit: 5000, Filter: batch.Test(p)}, 4096, 4096},
	} {
		must.Equal(t, request(c.o).LimitRows(4096, c.returned), c.want,
			"limit", c.o.Limit, "after", c.returned, "rows")
	}
}

// Batches of a long scan grow to the full size.
func TestBatchSizesGrow(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want []int
	}{
		{Options{}, []int{4096, 4096}},
		{Options{Lower: []byte{}}, []int{128, 512, 2048, 4096, 4096}},
		{Options{Lower: []byte{}, Upper: []byte{}}, []int{4096}},
		{Options{Upper: []byte{}, Descending: true}, []int{128, 512, 2048, 4096, 4096}},
		{Options{Lower: []byte{}, Descending: true}, []int{4096, 4096}},
		{Options{Limit: 1, Upper: []byte{}}, []int{16, 64, 256, 1024, 4096}},
		{Options{Limit: 20, Filter: batch.Not(batch.Filter{})}, []int{64, 256, 1024, 4096}},
		{Options{Limit: 100}, []int{100, 400, 1600, 4096}},
		{Options{Limit: 1 << 50}, []int{4096, 4096}},
	} {
		r := request(c.o)
		n := r.FirstRows()
		for i, want := range c.want {
			must.Equal(t, n, want, c.o, "batch", i, "rows")
			n = r.NextRows(n)
		}
	}
}

func TestProjectionIsInRequestedOrder(t *testing.T) {
	got := request(Options{Columns: []int{2, 0, 2}}).Projection()
	if !slices.EqualFunc(got, []string{"b", "n", "b"},
		func(c schema.Column, name string) bool { return c.Name == name }) {
		t.Errorf("projection %v", got)
	}
}

// The results of a merge refer to byte strings of inputs that have advanced, so the merge limits
// how many bytes of them it keeps.
func TestMergeOfLongStringsReturnsShortBatches(t *testing.T) {
	const k, rows, long = 3, 400, 10_000
	var fakes []*fake
	for range k {
		fakes = append(fakes, &fake{failAt: -1, sizes: func() int { return 4 }, noise: func() bool { return false }})
	}
	var all []row
	for i := range rows {
		r := rowOf(i)
		if i%5 > 0 {
			r.cells[1] = bytes.Repeat([]byte{byte(i)}, long)
		}
		all = append(all, r)
		fakes[i%k].rows = append(fakes[i%k].rows, r)
	}
	it := Merge(allColumns, iterators(fakes))
	at := 0
	for it.Next() {
		b, bytes := it.Batch(), 0
		for i := range b.Len {
			bytes += len(b.Columns[1].Cell(i))
			if got := (row{it.Keys()[i],
				[][]byte{b.Columns[0].Cell(i), b.Columns[1].Cell(i), b.Columns[2].Cell(i)}}); !got.equal(all[at+i]) {
				t.Fatalf("row %d is %v", at+i, got)
			}
		}
		if bytes > outBytes+4*long {
			t.Errorf("a batch of %d rows with %d bytes of text", b.Len, bytes)
		}
		at += b.Len
	}
	must.Do(t, it.Close())
	must.Equal(t, at, rows, "rows")
}
