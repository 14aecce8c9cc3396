package rewrite

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/memrowset"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// event is one operation on a key. cells are the whole row after it.
type event struct {
	ts    mvcc.Timestamp
	kind  change.Kind
	cells [][]byte
	set   []int // columns that an update sets
}

// life is the history of a key from an insert to the delete that ends its copy in one rowset, or to
// the end.
type life []event

// table is a set of keys, each with its successive lives, and the rowsets that contain them.
type table struct {
	r      *rand.Rand
	schema *schema.Schema
	lives  map[string][]life
	disk   *disk
	sets   []*rowset.DiskRowSet
	end    mvcc.Timestamp
	mvcc.Retained
}

// schemas have a byte-string key and a compound key.
var schemas = []*schema.Schema{
	mustSchema([]schema.Column{{ID: 3, Name: "k", Type: schema.String}, {ID: 4, Name: "v", Type: schema.Int32},
		{ID: 5, Name: "n", Type: schema.Int64, Nullable: true},
		{ID: 6, Name: "s", Type: schema.String, Nullable: true}}, 1),
	mustSchema([]schema.Column{{ID: 3, Name: "a", Type: schema.Int16}, {ID: 4, Name: "b", Type: schema.Binary},
		{ID: 5, Name: "v", Type: schema.Int32}}, 2),
	mustSchema([]schema.Column{{ID: 3, Name: "k", Type: schema.Int32}}, 1),
}

func randomCell(r *rand.Rand, c *schema.Column) []byte {
	switch {
	case c.Nullable && r.IntN(4) == 0:
		return nil
	case c.Type.Variable():
		return fmt.Append([]byte{}, "text "[:r.IntN(6)], r.IntN(50))
	}
	return append([]byte{byte(r.IntN(200))}, make([]byte, c.Type.Width()-1)...)
}

// randomLife returns a life that begins at from or later; if ended is set, it ends with a delete.
// Several events may share a timestamp, like the operations of one batch. ok is false if there is
// no time left.
func (t *table) randomLife(key [][]byte, from mvcc.Timestamp, ended bool) (l life, ok bool) {
	row := func() [][]byte {
		cells := slices.Clone(key)
		for i := t.schema.Keys; i < len(t.schema.Columns); i++ {
			cells = append(cells, randomCell(t.r, &t.schema.Columns[i]))
		}
		return cells
	}
	l = life{{ts: from + mvcc.Timestamp(t.r.IntN(5)), kind: change.Insert, cells: row()}}
	for n := t.r.IntN(6); n > 0 || l.dead() != ended; n-- {
		last := l[len(l)-1]
		e := event{ts: last.ts + mvcc.Timestamp(t.r.IntN(4))}
		switch {
		case l.dead():
			e.kind, e.cells = change.Reinsert, row()
		case n <= 0 || t.r.IntN(4) == 0 || len(t.schema.Columns) == t.schema.Keys:
			e.kind, e.cells = change.Delete, last.cells
		default:
			e.kind, e.cells = change.Update, slices.Clone(last.cells)
			for c := t.schema.Keys; c < len(t.schema.Columns); c++ {
				if c == len(t.schema.Columns)-1 && e.set == nil || t.r.IntN(2) == 0 {
					e.cells[c] = randomCell(t.r, &t.schema.Columns[c])
					e.set = append(e.set, c)
				}
			}
		}
		if e.kind == change.Delete && n <= 1 && e.ts == l[0].ts {
			e.ts++ // a copy that one batch inserted and deleted for good is in no file
		}
		l = append(l, e)
	}
	return l, l[len(l)-1].ts < t.end
}

func (l life) dead() bool { return l[len(l)-1].kind == change.Delete }

// at returns the key's row as of snap, or nil if it does not exist then.
func (t *table) at(key string, snap mvcc.Snapshot) (cells [][]byte) {
	for _, l := range t.lives[key] {
		for _, e := range l {
			if snap.Sees(e.ts) {
				if cells = e.cells; e.kind == change.Delete {
					cells = nil
				}
			}
		}
	}
	return cells
}

func (t *table) list(kind change.Kind, cells [][]byte, set []int) change.List {
	l := change.AppendUpdateHeader(nil, kind)
	for _, c := range set {
		l = change.AppendColumn(l, t.schema.Columns[c].ID, cells[c])
	}
	return l
}

// all returns the columns that a reinsert sets.
func (t *table) all() (set []int) {
	for c := t.schema.Keys; c < len(t.schema.Columns); c++ {
		set = append(set, c)
	}
	return set
}

// copyOf returns a life as a rowset contains it: base cells, undos and redos. The base may be the
// row as of any update or reinsert after which nothing is reinserted.
func (t *table) copyOf(l life) (base [][]byte, undo, redo []change.Delta) {
	first := 0 // the first event that can be the base
	for i, e := range l {
		if e.kind == change.Reinsert {
			first = i
		}
	}
	at := first
	for i := first; i < len(l); i++ {
		if l[i].kind != change.Delete && t.r.IntN(2) == 0 {
			at = i
		}
	}
	for i := at; i >= 0; i-- {
		d := change.Delta{TS: l[i].ts}
		switch l[i].kind {
		case change.Delete:
			d.List = t.list(change.Reinsert, l[i-1].cells, t.all())
		case change.Update:
			d.List = t.list(change.Update, l[i-1].cells, l[i].set)
		default:
			d.List = change.AppendDelete(nil)
		}
		undo = append(undo, d)
	}
	for _, e := range l[at+1:] {
		list := change.List(change.AppendDelete(nil))
		if e.kind == change.Update {
			list = t.list(change.Update, e.cells, e.set)
		}
		redo = append(redo, change.Delta{TS: e.ts, List: list})
	}
	return l[at].cells, undo, redo
}

// newTable deals the lives of random keys to k rowsets. Lives of one key go to different rowsets.
func newTable(r *rand.Rand, s *schema.Schema, k, keys int) (*table, error) {
	t := &table{r: r, schema: s, lives: map[string][]life{}, disk: newDisk(), end: 60}
	in := make([]map[string]life, k)
	for i := range in {
		in[i] = map[string]life{}
	}
	for range keys {
		var cells [][]byte
		for i := range s.Keys {
			cells = append(cells, randomCell(r, &s.Columns[i]))
		}
		key := string(encodeKey(s, cells))
		if t.lives[key] != nil {
			continue
		}
		from := mvcc.Timestamp(1 + r.IntN(20))
		places := r.Perm(k)
		for n := 1 + r.IntN(k); n > 0; n-- {
			l, ok := t.randomLife(cells, from, n > 1 || r.IntN(2) == 0)
			if !ok {
				break
			}
			t.lives[key] = append(t.lives[key], l)
			in[places[n-1]][key] = l
			if from = l[len(l)-1].ts; !l.dead() {
				break
			}
		}
	}
	for i := range in {
		if err := t.write(uint64(i), in[i]); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// write writes one rowset, with its newest redos in memory.
func (t *table) write(id uint64, in map[string]life) error {
	if len(in) == 0 {
		return nil
	}
	rows := &change.Rows{Batch: batch.New(t.schema.Columns, 0)}
	cut := mvcc.Timestamp(t.r.IntN(int(t.end)))
	var late []change.Delta
	keys := make([]string, 0, len(in))
	for key := range in {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for i, key := range keys {
		base, undo, redo := t.copyOf(in[key])
		for c, v := range rows.Batch.Columns {
			v.AppendCell(base[c])
		}
		rows.Keys = append(rows.Keys, []byte(key))
		for _, d := range undo {
			d.Row = uint32(i)
			rows.Undo = append(rows.Undo, d)
		}
		for _, d := range redo {
			d.Row = uint32(i)
			if d.TS < cut {
				rows.Redo = append(rows.Redo, d)
			} else {
				late = append(late, d)
			}
		}
	}
	rows.Batch.Len = len(keys)
	w, err := rowset.NewWriter(t.disk, t.schema, id)
	if err == nil {
		err = w.Append(rows)
	}
	if err != nil {
		return err
	}
	row, err := w.Finish()
	if err != nil {
		return err
	}
	d, err := rowset.Open(t.schema, row, rowset.Options{Blocks: t.disk})
	if err != nil {
		return err
	}
	for _, x := range late {
		d.Apply(batch.Ordinal(x.Row), x.TS, 1, x.List)
	}
	t.sets = append(t.sets, d)
	return nil
}

// rise raises the floor, by less than n. Some of the states that could be read before stay readable.
func (t *table) rise(n int) {
	next := mvcc.Retained{Floor: t.Floor + mvcc.Timestamp(t.r.IntN(n))}
	keep := t.r.IntN(4) // of 4
	for ts := t.First(); ts < next.Floor; ts++ {
		if t.Has(ts) && t.r.IntN(4) < keep && t.r.IntN(2) == 0 {
			next.Points = append(next.Points, ts)
		}
	}
	t.Retained = next
}

// merge replaces some rowsets by the outputs of a Run. The floor never descends.
func (t *table) merge(n int) (*result, error) {
	t.r.Shuffle(len(t.sets), func(i, j int) { t.sets[i], t.sets[j] = t.sets[j], t.sets[i] })
	if t.r.IntN(3) == 0 {
		t.rise(20)
	}
	var inputs []Input
	for _, d := range t.sets[:n] {
		h, err := d.Histories(mvcc.Everything)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, h)
	}
	res, err := runOn(t.disk, t.schema, t.Retained, int64(t.r.IntN(2)*t.r.IntN(20000)), inputs...)
	if err != nil {
		return nil, err
	}
	t.sets = append(res.sets, t.sets[n:]...)
	return res, nil
}

// check compares all rowsets with the model at every readable snapshot.
func (t *table) check() error {
	whole := &result{sets: t.sets}
	for ts := t.First(); ts <= t.end; ts++ {
		if !t.Has(ts) {
			continue
		}
		snap := mvcc.AsOf(ts)
		got, err := whole.at(t.schema, snap)
		if err != nil {
			return fmt.Errorf("at %d: %w", snap, err)
		}
		for key := range t.lives {
			if want := t.at(key, snap); !sameCells(got[key], want) {
				return fmt.Errorf("at %d: key %x is %x, want %x, lives %+v", snap, key, got[key], want, t.lives[key])
			}
		}
		for key := range got {
			if t.lives[key] == nil {
				return fmt.Errorf("at %d: key %x was never inserted", snap, key)
			}
		}
	}
	return nil
}

// checkForm checks a result against §13.4 and §13.6: no redo except the DELETE of a ghost, undos in
// descending order of time, nothing that no retained state needs; rowsets that ascend and do not overlap.
func (t *table) checkForm(res *result) error {
	last, rows, live := "", int64(0), int64(0)
	err := res.histories(func(r *change.Rows, i int, undo, redo []change.Delta) error {
		key := string(r.Keys[i])
		if rows > 0 && key <= last {
			return fmt.Errorf("key %x after %x", key, last)
		}
		last = key
		rows++
		if len(redo) == 0 {
			live++
		} else if len(redo) > 1 || redo[0].List.Kind() != change.Delete || redo[0].TS <= t.First() {
			return fmt.Errorf("key %x: redos %v, retained %v", key, redo, t.Retained)
		}
		for k, d := range undo {
			before, needed := t.Before(d.TS)
			spare := false // it joins the UPDATE before it, or begins a life that no retained state is in
			if k > 0 {
				last := undo[k-1]
				end, _ := t.Before(last.TS)
				kinds := [2]change.Kind{last.List.Kind(), d.List.Kind()}
				spare = last.TS <= t.Floor && (kinds == [2]change.Kind{change.Update, change.Update} && before == end ||
					kinds == [2]change.Kind{change.Reinsert, change.Delete} && end < d.TS)
			}
			if !needed || spare || k > 0 && d.TS > undo[k-1].TS {
				return fmt.Errorf("key %x: undos %v, retained %v", key, undo, t.Retained)
			}
		}
		return nil
	})
	for _, row := range res.rows {
		live -= row.LiveRows
	}
	if err == nil && (live != 0 || rows != res.stats.RowsWritten) {
		err = fmt.Errorf("%d rows, the metadata say %d; live rows are off by %d", rows, res.stats.RowsWritten, live)
	}
	return err
}

// Plan: keys live several times, each time in another rowset. Rowsets are merged in any order until
// one is left, while the floor sometimes rises. Every readable snapshot has the same content before
// and after each merge.
func TestMergesChangeNoAnswer(t *testing.T) {
	r := seedtest.Rand(t)
	rounds := seedtest.Rounds(80, 20)
	for round := range rounds {
		keys := 1 + r.IntN(12)
		if round%40 == 39 {
			keys = 400
		}
		tab, err := newTable(r, schemas[r.IntN(len(schemas))], 1+r.IntN(6), keys)
		if err == nil {
			err = tab.check()
		}
		must.Do(t, err, "round", round, "as written")
		for last := len(tab.sets) == 0; !last; {
			n := 1 + r.IntN(len(tab.sets))
			last = n == len(tab.sets)
			res, err := tab.merge(n)
			if err == nil {
				err = tab.checkForm(res)
			}
			if err == nil {
				err = tab.check()
			}
			must.Do(t, err, "round", round, n, "merged, retained", tab.Retained)
		}
	}
}

// flushInput is a MemRowSet as the input of a flush.
type flushInput struct {
	it  *memrowset.HistoryIterator
	max int
}

func (f flushInput) Next() (*change.Rows, error) { return f.it.Next(f.max) }
func (f flushInput) Keeps() int                  { return f.it.Keeps() }

// The outputs of a flush have the same content as the MemRowSet at every snapshot.
func TestFlushChangesNoAnswer(t *testing.T) {
	r := seedtest.Rand(t)
	rounds := seedtest.Rounds(100, 25)
	for range rounds {
		s := schemas[r.IntN(len(schemas))]
		tab := &table{r: r, schema: s}
		if r.IntN(2) == 0 {
			tab.rise(40)
		}
		m := memrowset.New(s, nil)
		ts, keys := mvcc.Timestamp(1), map[string]bool{}
		for range r.IntN(200) {
			ts += mvcc.Timestamp(r.IntN(2))
			var cells [][]byte
			for i := range s.Columns {
				cells = append(cells, randomCell(r, &s.Columns[i]))
			}
			key := encodeKey(s, cells)
			keys[string(key)] = true
			switch {
			case !m.Live(key):
				m.Insert(key, ts, 1, m.RowFormat().AppendRow(nil, cells))
			case r.IntN(2) == 0 || len(tab.all()) == 0:
				m.Mutate(key, ts, 1, change.AppendDelete(nil))
			default:
				m.Mutate(key, ts, 1, tab.list(change.Update, cells, tab.all()))
			}
		}
		res := must.Get(runOn(newDisk(), s, tab.Retained, 0, flushInput{m.Histories(mvcc.Everything), 1 + r.IntN(50)}))(t)
		must.Do(t, tab.checkForm(res))
		for at := tab.First(); at <= ts; at++ {
			if !tab.Has(at) {
				continue
			}
			snap := mvcc.AsOf(at)
			got := must.Get(res.at(s, snap))(t)
			for key := range keys {
				var want [][]byte
				if row, live := m.Get([]byte(key), snap, nil); live {
					want = m.RowFormat().AppendCells(nil, row)
				}
				if !sameCells(got[key], want) {
					t.Fatalf("at %d, retained %v: key %x is %x, want %x", snap, tab.Retained, key, got[key], want)
				}
			}
		}
	}
}
