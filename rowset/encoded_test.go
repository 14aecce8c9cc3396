package rowset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/rowpage"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// windowCheck is a consumer that compares what windows compute with the model.
type windowCheck struct {
	w     *testRowSet
	r     *rand.Rand
	req   *scan.Options
	count [7]int // answers by kind: Count, Sum, SumProducts, Extreme, Split, Strips, Sum by differences
	take  bool
	rows  int
}

// values returns the cells of a column in rows.
func (c *windowCheck) values(e *encoded, column int, rows batch.Bitmap) (cells [][]byte) {
	for i := rows.Next(0); i >= 0; i = rows.Next(i + 1) {
		m := &c.w.rows[int(e.it.from)+i]
		state, _ := m.at(m.before(c.req.Snapshot))
		cells = append(cells, state[c.req.Columns[column]])
	}
	return cells
}

var errWindow = errors.New("the window computes something else than the model")

func (c *windowCheck) consume(win scan.Window) (bool, error) {
	e := win.(*encoded)
	rows := append(batch.Bitmap{}, win.Selection()...)
	c.rows += rows.Count()
	if c.r.IntN(2) == 0 {
		for i := rows.Next(0); i >= 0; i = rows.Next(i + 1) {
			if c.r.IntN(3) == 0 {
				rows.Clear(i)
			}
		}
	}
	for i := range c.req.Columns {
		for _, check := range []func(*encoded, int, batch.Bitmap) error{c.checkCount, c.checkSums,
			c.checkExtremes, c.checkSplit} {
			if err := check(e, i, rows); err != nil {
				return false, err
			}
		}
	}
	for range 3 {
		if err := c.checkStrips(e, rows); err != nil {
			return false, err
		}
	}
	return c.take, nil
}

// checkStrips reads strips of random columns.
func (c *windowCheck) checkStrips(e *encoded, rows batch.Bitmap) error {
	x := &scan.Index{}
	for i := range c.req.Columns {
		info, err := e.Describe(i)
		if err != nil {
			return err
		}
		if info.Coded && x.Bits+info.Bits <= 15 && c.r.IntN(2) == 0 {
			x.Codes = append(x.Codes, scan.IndexColumn{Column: i, Shift: x.Bits, ColumnInfo: info})
			x.Bits += info.Bits
		}
		if info.Integers && c.r.IntN(2) == 0 {
			x.Values = append(x.Values, i)
		}
	}
	var got, want []string
	ok, err := e.Strips(x, rows, func(s *scan.Strip) error {
		for at, index := range s.Index {
			if index>>x.Bits != 0 {
				continue
			}
			line := ""
			for _, code := range x.Codes {
				line += cellText(codedCell(c.schemaColumn(code.Column).Type, &code, index))
			}
			for _, values := range s.Values {
				line += fmt.Sprint(values[at], " ")
			}
			got = append(got, line)
		}
		return nil
	})
	if err != nil || !ok {
		return errors.Join(err, map[bool]error{true: errWindow}[len(got) > 0])
	}
	columns := map[int][][]byte{}
	for i := range c.req.Columns {
		columns[i] = c.values(e, i, rows)
	}
	for at := range rows.Count() {
		line := ""
		for _, code := range x.Codes {
			line += cellText(columns[code.Column][at])
		}
		for _, i := range x.Values {
			line += fmt.Sprint(batch.Int128OfCell(c.schemaColumn(i).Type, columns[i][at]), " ")
		}
		want = append(want, line)
	}
	if !slices.Equal(got, want) {
		return errWindow
	}
	c.answered(5, ok && len(x.Codes) > 0 && len(x.Values) > 0)
	return nil
}

func cellText(cell []byte) string { return fmt.Sprintf("%v %x ", cell == nil, cell) }

func (c *windowCheck) schemaColumn(i int) *schema.Column {
	return &c.w.schema.Columns[c.req.Columns[i]]
}

// codedCell returns the cell of a code.
func codedCell(t schema.Type, c *scan.IndexColumn, index uint16) []byte {
	code := index >> c.Shift & (1<<c.Bits - 1)
	switch {
	case code&c.Null != 0:
		return nil
	case c.Words != nil:
		return c.Words[code]
	}
	return binary.LittleEndian.AppendUint64(nil, uint64(code))[:t.Width()]
}

func (c *windowCheck) checkCount(e *encoded, i int, rows batch.Bitmap) error {
	want := int64(0)
	for _, cell := range c.values(e, i, rows) {
		if cell != nil {
			want++
		}
	}
	n, ok, err := e.Count(i, rows)
	if err != nil || ok && n != want {
		return errors.Join(errWindow, err)
	}
	c.answered(0, ok)
	return nil
}

func (c *windowCheck) answered(kind int, ok bool) {
	if ok {
		c.count[kind]++
	}
}

// integers reports whether the cells of column i are integers.
func (c *windowCheck) integers(i int) bool {
	t := c.w.schema.Columns[c.req.Columns[i]].Type
	return !t.Variable() && t != schema.Bool && t != schema.Float && t != schema.Double
}

func (c *windowCheck) checkSums(e *encoded, i int, rows batch.Bitmap) error {
	if sum, n, ok, err := e.Sum(i, rows); err != nil || ok && !c.integers(i) {
		return errors.Join(errWindow, err)
	} else if ok {
		want, wantN := c.products(e, []int{i}, rows)
		if big128(sum).Cmp(want) != 0 || n != wantN {
			return errWindow
		}
		c.answered(1, true)
		_, _, differ := e.it.window.Differences(c.schemaColumn(i).ID)
		c.answered(6, differ)
	}
	for j := range c.req.Columns {
		sum, n, ok, err := e.SumProducts(i, j, rows)
		if err != nil || ok && (!c.integers(i) || !c.integers(j)) {
			return errors.Join(errWindow, err)
		} else if ok {
			want, wantN := c.products(e, []int{i, j}, rows)
			if big128(sum).Cmp(want) != 0 || n != wantN {
				return errWindow
			}
			c.answered(2, true)
		}
	}
	return nil
}

// products returns the sum of the products of columns.
func (c *windowCheck) products(e *encoded, columns []int, rows batch.Bitmap) (sum *big.Int, n int64) {
	sum = new(big.Int)
	cells := make([][][]byte, len(columns))
	for k, i := range columns {
		cells[k] = c.values(e, i, rows)
	}
next:
	for at := range cells[0] {
		product := big.NewInt(1)
		for k, i := range columns {
			if cells[k][at] == nil {
				continue next
			}
			product.Mul(product, big128(batch.Int128OfCell(c.w.schema.Columns[c.req.Columns[i]].Type, cells[k][at])))
		}
		sum.Add(sum, product)
		n++
	}
	return sum, n
}

func big128(v batch.Int128) *big.Int {
	x := new(big.Int).Lsh(big.NewInt(v.Hi), 64)
	return x.Add(x, new(big.Int).SetUint64(v.Lo))
}

func (c *windowCheck) checkExtremes(e *encoded, i int, rows batch.Bitmap) error {
	for _, greatest := range []bool{false, true} {
		got, ok, err := e.Extreme(i, greatest, rows)
		if err != nil {
			return err
		}
		t := c.w.schema.Columns[c.req.Columns[i]].Type
		if !ok || !c.integers(i) && !t.Variable() { // the tests of cfile compare floats
			continue
		}
		var want []byte
		for _, cell := range c.values(e, i, rows) {
			if cell != nil && (want == nil || batch.Compare(t, cell, want) > 0 == greatest) {
				want = cell
			}
		}
		if !sameCell(got, want) {
			return errWindow
		}
		c.answered(3, true)
	}
	return nil
}

// checkSplit splits rows by a column, and the parts by a second one.
func (c *windowCheck) checkSplit(e *encoded, i int, rows batch.Bitmap) error {
	return c.checkSplits(e, i, rows, func(part batch.Bitmap) error {
		part = append(batch.Bitmap{}, part...)
		return c.checkSplits(e, c.r.IntN(len(c.req.Columns)), part, func(batch.Bitmap) error { return nil })
	})
}

func (c *windowCheck) checkSplits(e *encoded, i int, rows batch.Bitmap, inner func(part batch.Bitmap) error) error {
	left := append(batch.Bitmap{}, rows...)
	ok, err := e.Split(i, rows, func(cell []byte, members batch.Bitmap) error {
		for _, got := range c.values(e, i, members) {
			if !sameCell(got, cell) {
				return errWindow
			}
		}
		before := left.Count()
		if left.AndNot(members); before-left.Count() != members.Count() {
			return errWindow
		}
		return inner(members)
	})
	if err != nil || ok && left.Any() {
		return errors.Join(errWindow, err)
	}
	c.answered(4, ok)
	return nil
}

// Windows compute what the model does, whatever is stored, NULL, changed, deleted or filtered. A
// consumer that takes all of them leaves no batch. From the third scan of a state on, changes are in
// overlays.
func TestWindowsComputeWhatTheModelDoes(t *testing.T) {
	rowpage.Eager.Store(true)
	var count [7]int
	test := func(t *testing.T, r *rand.Rand, w *testRowSet) {
		set := w.cached(t, cache.New(16<<20))
		defer set.Unref()
		snaps := w.snapshots(r)
		for range 4 {
			snaps = append(snaps, mvcc.Everything)
		}
		for _, snap := range snaps {
			req := w.randomRequest(r, snap)
			req.Descending, req.Keys = false, false
			if r.IntN(2) == 0 {
				req.Lower, req.Upper, req.Rows = nil, nil, scan.RowRange{}
			}
			it, err := newIterator(set, req)
			must.Do(t, err)
			check := &windowCheck{w: w, r: r, req: &req, take: r.IntN(2) == 0}
			it.Offer(check.consume)
			if !check.take {
				err = w.compare(req, it)
			} else if rows, _ := w.answer(req); it.Next() || check.rows != len(rows) {
				t.Errorf("%d rows offered, want %d", check.rows, len(rows))
			}
			must.Do(t, errors.Join(err, it.Close()), "request", req)
			for i, n := range check.count {
				count[i] += n
			}
		}
	}
	withTestRowSets(t, test)
	r := seedtest.Rand(t)
	words := schema.Column{ID: 2, Name: "words", Type: schema.String, Encoding: schema.Dictionary, Nullable: true}
	names := words
	names.ID, names.Name = 3, "names"
	s := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32}, words, names}, 1)
	for range 20 {
		test(t, r, newTestRowSet(t, r, s, 12))
	}
	for i, n := range count {
		if n == 0 {
			t.Errorf("no answer of kind %d", i)
		}
	}
	t.Logf("answers: %v", count)
}
