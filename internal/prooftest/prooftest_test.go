package prooftest

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
)

// twoColumns is a table of an int8 key and an int8 value that has to be given, and another with a
// default.
func twoColumns(t *testing.T) *Model {
	s, err := schema.New([]schema.Column{{Name: "k", Type: schema.Int8}, {Name: "v", Type: schema.Int8},
		{Name: "d", Type: schema.Int8, Default: []byte{9}}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	m := NewModel()
	m.Create("t", s)
	return m
}

func op(ask oribi.Op, cells ...byte) Op {
	o := Op{Ask: ask, Table: "t", Cells: make([][]byte, 3), Set: make([]bool, 3)}
	for i, c := range cells {
		o.Cells[i], o.Set[i] = []byte{c}, true
	}
	return o
}

// The result table of the write path, row by row: each operation on a row that is there and on one
// that is not.
func TestModelFollowsTheResultTable(t *testing.T) {
	for _, c := range []struct {
		op      Op
		live    bool
		want    []byte // v and d afterwards; nil = no row
		refused bool
		cause   error
	}{
		{op(oribi.OpInsert, 1, 5), false, []byte{5, 9}, false, nil},
		{op(oribi.OpInsert, 1, 5), true, nil, true, oribi.ErrKeyExists},
		{op(oribi.OpInsertIgnore, 1, 5), true, []byte{2, 3}, false, nil},
		{op(oribi.OpInsert, 1), false, nil, true, nil},
		{op(oribi.OpUpsert, 1, 5), false, []byte{5, 9}, false, nil},
		{op(oribi.OpUpsert, 1, 5), true, []byte{5, 3}, false, nil},
		{op(oribi.OpUpsert, 1), true, []byte{2, 3}, false, nil},
		{op(oribi.OpUpsert, 1), false, nil, true, nil},
		{op(oribi.OpUpsertIgnore, 1, 5), true, []byte{5, 3}, false, nil},
		{op(oribi.OpUpdate, 1, 5), true, []byte{5, 3}, false, nil},
		{op(oribi.OpUpdate, 1, 5), false, nil, true, oribi.ErrNotFound},
		{op(oribi.OpUpdate, 1), true, nil, true, nil},
		{op(oribi.OpUpdateIgnore, 1, 5), false, nil, false, nil},
		{op(oribi.OpDelete, 1), true, nil, false, nil},
		{op(oribi.OpDelete, 1), false, nil, true, oribi.ErrNotFound},
		{op(oribi.OpDelete, 1, 5), true, nil, true, nil},
		{op(oribi.OpDeleteIgnore, 1), false, nil, false, nil},
	} {
		m := twoColumns(t)
		if c.live {
			m.commit(m.resolve([]Op{op(oribi.OpInsert, 1, 2, 3)}, false), 1)
		}
		o := m.resolve([]Op{c.op}, false)
		if (o.refused == 0) != c.refused || o.cause != c.cause {
			t.Errorf("%v, live %v: refused %d, %v", c.op, c.live, o.refused, o.cause)
		}
		if c.refused {
			continue
		}
		m.commit(o, 2)
		row := m.Tables["t"].Row([][]byte{{1}}, mvcc.Max)
		if got := bytes.Join(row, nil); row == nil != (c.want == nil) || row != nil && !bytes.Equal(got[1:], c.want) {
			t.Errorf("%v, live %v: row %v, want %v", c.op, c.live, row, c.want)
		}
	}
}

func TestModelKeepsVersionsAndTakesCommitsBack(t *testing.T) {
	m := twoColumns(t)
	m.commit(m.resolve([]Op{op(oribi.OpInsert, 1, 2)}, false), 10)
	m.commit(m.resolve([]Op{op(oribi.OpDelete, 1), op(oribi.OpInsert, 1, 3), op(oribi.OpUpdate, 1, 4)}, false), 20)
	m.commit(m.resolve([]Op{op(oribi.OpDelete, 1)}, false), 30)
	v := func(ts mvcc.Timestamp) int {
		if row := m.Tables["t"].Row([][]byte{{1}}, ts); row != nil {
			return int(row[1][0])
		}
		return -1
	}
	for ts, want := range map[mvcc.Timestamp]int{9: -1, 10: 2, 19: 2, 20: 4, 29: 4, 30: -1} {
		if v(ts) != want {
			t.Errorf("at %d: %d, want %d", ts, v(ts), want)
		}
	}
	c := m.clone()
	c.truncate(1)
	if got := c.Tables["t"].Row([][]byte{{1}}, 50); got == nil || got[1][0] != 2 {
		t.Errorf("with the first commit alone: %v", got)
	}
	if v(50) != -1 {
		t.Error("a clone shares its versions")
	}
}

// A script says all that a history needs: it comes back from its text, and runs to the same counts.
// Without crashes: what a power cut leaves of unsynced pages hangs on how far Pebble's own
// goroutines had come, and so does which unsynced batches are lost.
func TestScriptComesBackFromItsText(t *testing.T) {
	for seed := range uint64(6) {
		settings := RandomSettings(seed)
		settings.NoCrashes = true
		r := Explore(settings, func(c Counts) bool { return c.Steps < 60 })
		if r.Err != nil {
			t.Fatalf("seed %d: %v", seed, r.Err)
		}
		text := r.Script.String()
		s, err := Parse(text)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if got := s.String(); got != text {
			t.Fatalf("seed %d: %s\nis not\n%s", seed, got, text)
		}
		if again := Run(s); again.Err != nil || again.Counts != r.Counts {
			t.Errorf("seed %d: %+v, %v, want %+v", seed, again.Counts, again.Err, r.Counts)
		}
	}
	if _, err := Parse("create t0 keys=x"); err == nil {
		t.Error("nonsense is a script")
	}
}

// A failing history is shortened to what it needs: here a write of a certain key and a step that
// does not exist.
func TestShrinkLeavesWhatIsNeeded(t *testing.T) {
	r := Explore(RandomSettings(3), func(c Counts) bool { return c.Steps < 40 })
	s := &Script{Settings: r.Script.Settings, Steps: append(r.Script.Steps[:30:30], Step{Kind: "nonsense"})}
	s.Steps = append(s.Steps, r.Script.Steps[30:]...)
	if short := Shrink(s, 10*time.Second); len(short.Steps) != 1 || short.Steps[0].Kind != "nonsense" {
		t.Errorf("what is left:\n%s", short)
	}
}

func TestRandomCellsFitTheirColumns(t *testing.T) {
	r := newRand(5)
	for range 3000 {
		s := randomSchema(r)
		for i := range s.Columns {
			c := &s.Columns[i]
			cell := randomCell(r, c)
			if w := c.Type.Width(); w > 0 && len(cell) != w {
				t.Fatalf("%s: %d bytes", c.TypeName(), len(cell))
			}
			if d, ok := goValue(c, cell).(oribi.Decimal); ok && !d.Unscaled.FitsDigits(c.Precision) {
				t.Fatalf("%s: %v", c.TypeName(), d)
			}
			if c.Type == schema.Array {
				if err := schema.CheckArray(c.Element, cell); err != nil {
					t.Fatalf("%s: %v", c.TypeName(), err)
				}
			} else if p := (batch.Predicate{Type: c.Type, Op: batch.Eq, Values: [][]byte{cell}}); p.Prepare() != nil {
				t.Fatalf("%s: %x is no cell", c.TypeName(), cell)
			}
		}
	}
}

// The goroutines of an open store, Pebble's cleanup among them, change the disk while the probes of
// its crash states are set up.
func TestChangesDuringSetupAreNoCrashPoints(t *testing.T) {
	disk := crashfs.New(vfs.NewMem())
	r := newCrashRunner(traceSettings(1), disk)
	x := newProbing(disk, r)
	change := func() {
		t.Helper()
		f, err := disk.Create(filepath.Join(Dir, "new"))
		if err == nil {
			err = errors.Join(f.Close(), disk.Remove(filepath.Join(Dir, "new")))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	change()
	if n := x.counted().Points; n != 0 {
		t.Errorf("%d crash points before the probes are set up", n)
	}
	x.limit = 1
	x.watch(x.check)
	change()
	if n := x.counted().Points; n == 0 {
		t.Error("no crash point afterwards")
	}
	if _, _, err := x.end(); err != nil {
		t.Error(err)
	}
}
