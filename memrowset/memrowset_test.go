package memrowset

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// testSchema has a byte-string key, so that keys of all lengths occur; an int32; a nullable string.
func testSchema(t testing.TB) *schema.Schema {
	t.Helper()
	s := must.Get(schema.New([]schema.Column{
		{ID: 10, Name: "k", Type: schema.Binary},
		{ID: 11, Name: "n", Type: schema.Int32},
		{ID: 12, Name: "s", Type: schema.String, Nullable: true},
	}, 1))(t)
	return s
}

func int32Cell(n int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(n)) }

// set returns an update; s == "-" does not change the string, "" sets it to NULL.
func set(n int, s string) change.List {
	l := change.AppendColumn(change.AppendUpdateHeader(nil, change.Update), 11, int32Cell(n))
	switch s {
	case "-":
	case "":
		l = change.AppendColumn(l, 12, nil)
	default:
		l = change.AppendColumn(l, 12, []byte(s))
	}
	return l
}

var deletion = change.List(change.AppendDelete(nil))

func image(m *MemRowSet, key string, n int, s string) []byte {
	cells := [][]byte{[]byte(key), int32Cell(n), []byte(s)}
	if s == "" {
		cells[2] = nil
	}
	return m.RowFormat().AppendRow(nil, cells)
}

// show formats an image as n/s.
func show(m *MemRowSet, row []byte, live bool) string {
	if !live {
		return "absent"
	}
	if err := m.RowFormat().Check(row); err != nil {
		return err.Error()
	}
	n := binary.LittleEndian.Uint32(m.RowFormat().Cell(row, 1))
	if s := m.RowFormat().Cell(row, 2); s != nil {
		return fmt.Sprintf("%d/%s", n, s)
	}
	return fmt.Sprintf("%d/NULL", n)
}

func at(m *MemRowSet, key string, snap mvcc.Snapshot) string {
	row, live := m.Get([]byte(key), snap, nil)
	return show(m, row, live)
}

func TestSnapshotsSeeEachVersion(t *testing.T) {
	m := New(testSchema(t), nil)
	key := []byte("a")
	m.Insert(key, 10, 1, image(m, "a", 1, "x"))
	m.Mutate(key, 20, 2, set(2, "-"))
	m.Mutate(key, 20, 2, set(3, "y"))
	m.Mutate(key, 30, 3, set(4, ""))
	m.Mutate(key, 40, 4, deletion)
	m.Insert(key, 50, 5, image(m, "a", 5, "z"))
	m.Mutate(key, 60, 6, set(6, "-"))
	for snap, want := range map[mvcc.Snapshot]string{
		10: "absent", 11: "1/x", 20: "1/x", 21: "3/y", 31: "4/NULL", 40: "4/NULL",
		41: "absent", 50: "absent", 51: "5/z", 61: "6/z", mvcc.Everything: "6/z",
	} {
		must.Equal(t, at(m, "a", snap), want, "at", snap)
	}
}

func TestMutateFindsLiveRowsOnly(t *testing.T) {
	m := New(testSchema(t), nil)
	if m.Mutate([]byte("a"), 1, 1, set(1, "-")) || m.Live([]byte("a")) {
		t.Error("an absent row was updated")
	}
	m.Insert([]byte("a"), 2, 2, image(m, "a", 1, "x"))
	if !m.Live([]byte("a")) || !m.Mutate([]byte("a"), 3, 3, deletion) {
		t.Error("the row is not live")
	}
	if m.Live([]byte("a")) || m.Mutate([]byte("a"), 4, 4, set(1, "-")) || m.Mutate([]byte("a"), 4, 4, deletion) {
		t.Error("a ghost was changed")
	}
	if row, live := m.NewestRow([]byte("a")); row != nil || live {
		t.Error("a ghost has a row")
	}
	m.Insert([]byte("a"), 5, 5, image(m, "a", 2, ""))
	if !m.Mutate([]byte("a"), 5, 5, set(3, "y")) || at(m, "a", mvcc.Everything) != "3/y" {
		t.Errorf("after the reinsert: %s", at(m, "a", mvcc.Everything))
	}
}

func TestCountsMatchTheChanges(t *testing.T) {
	grown := int64(0)
	m := New(testSchema(t), func(n int64) { grown += n })
	if m.FirstLSN() != 0 || m.MaxTimestamp() != 0 || m.Len() != 0 {
		t.Error("the counts of an empty set are not 0")
	}
	for i := range 1000 {
		key := fmt.Sprint(i)
		m.Insert([]byte(key), mvcc.Timestamp(1000+i), lsn.LSN(500+i), image(m, key, i, "x"))
	}
	m.Mutate([]byte("3"), 5000, 400, deletion) // LSNs arrive in any order
	m.Mutate([]byte("4"), 4000, 450, deletion)
	m.Insert([]byte("3"), 6000, 2000, image(m, "3", 3, "y"))
	if m.Len() != 1000 || m.LiveRows() != 999 || m.FirstLSN() != 400 || m.MaxTimestamp() != 6000 {
		t.Errorf("%d rows, %d live, first LSN %d, max timestamp %d", m.Len(), m.LiveRows(), m.FirstLSN(),
			m.MaxTimestamp())
	}
	if grown != m.Bytes() || grown < 1000*40 {
		t.Errorf("grow was called with %d bytes, Bytes returns %d", grown, m.Bytes())
	}
	m.Release()
	must.Equal(t, grown, 0, "bytes are left after Release")
}

func TestInsertOfLiveKeyPanics(t *testing.T) {
	for name, insert := range map[string]func(m *MemRowSet){
		"single":     func(m *MemRowSet) { m.Insert([]byte("a"), 9, 9, image(m, "a", 1, "x")) },
		"among many": func(m *MemRowSet) { m.InsertMany([][]byte{[]byte("a")}, 9, 9, [][]byte{image(m, "a", 1, "x")}) },
		"with ghosts": func(m *MemRowSet) {
			m.Mutate([]byte("b"), 8, 8, deletion)
			m.Insert([]byte("a"), 9, 9, image(m, "a", 1, "x"))
		},
	} {
		m := New(testSchema(t), nil)
		m.Insert([]byte("a"), 1, 1, image(m, "a", 1, "x"))
		m.Insert([]byte("b"), 1, 1, image(m, "b", 1, "x"))
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			insert(m)
		}()
	}
}

func TestInsertManyIsManyInserts(t *testing.T) {
	for _, ghosts := range []bool{false, true} {
		m := New(testSchema(t), nil)
		if ghosts {
			m.Insert([]byte("007"), 1, 1, image(m, "007", 7, "old"))
			m.Mutate([]byte("007"), 2, 2, deletion)
		}
		var keys, rows [][]byte
		for i := range 300 {
			key := fmt.Sprintf("%03d", i)
			keys, rows = append(keys, []byte(key)), append(rows, image(m, key, i, key))
		}
		m.InsertMany(keys, 10, 5, rows)
		must.Equal(t, m.Len(), 300, "ghosts", ghosts, "rows")
		must.Equal(t, m.LiveRows(), 300, "ghosts", ghosts, "live")
		it := m.NewIterator(11, nil, nil, false)
		gotKeys, gotRows := it.Next(1000)
		for i := range keys {
			must.Equal(t, gotKeys[i], keys[i], "ghosts", ghosts, "row", i)
			must.Equal(t, gotRows[i], rows[i], "ghosts", ghosts, "row", i)
		}
	}
}

// Each version of a row with many updates is correct, and the newest is found within one interval
// of full images.
func TestManyVersionsStayReadable(t *testing.T) {
	m := New(testSchema(t), nil)
	key := []byte("hot")
	m.Insert(key, 1, 1, image(m, "hot", 0, "s0"))
	const versions = 100
	for i := 1; i <= versions; i++ {
		s := "-"
		if i%7 == 0 {
			s = fmt.Sprint("s", i)
		}
		m.Mutate(key, mvcc.Timestamp(i+1), lsn.LSN(i+1), set(i, s))
	}
	for i := 0; i <= versions; i++ {
		must.Equal(t, at(m, "hot", mvcc.Snapshot(i+2)), fmt.Sprintf("%d/s%d", i, i/7*7), "version", i)
	}
	ref := m.find(key, false)
	steps := 0
	for l := m.newest(ref); l != 0 && m.link(l).image() == nil; l = m.link(l).older() {
		steps++
	}
	if steps >= imageInterval {
		t.Errorf("the newest state is %d updates away from a full image", steps)
	}
}

func TestGetLeavesTheSetsMemoryAlone(t *testing.T) {
	m := New(testSchema(t), nil)
	m.Insert([]byte("a"), 1, 1, image(m, "a", 1, "x"))
	m.Mutate([]byte("a"), 2, 2, set(2, "-"))
	plain, _ := m.Get([]byte("a"), 2, nil)
	_ = append(plain, 0xff) // must not overwrite memory of the set
	dst := make([]byte, 64)
	built, _ := m.Get([]byte("a"), 3, dst)
	must.Equal(t, &built[0] == &dst[0], true, "the image is not in dst")
	must.Equal(t, at(m, "a", 2)+" "+at(m, "a", 3), "1/x 2/x")
}

// The keys differ within and after their first 8 bytes; one is a ghost, which counts too.
func TestEndsBeforeComparesWithTheGreatestKey(t *testing.T) {
	m := New(testSchema(t), nil)
	if !m.EndsBefore(nil) || !m.EndsBefore([]byte("a")) {
		t.Error("an empty set has a key")
	}
	for i, key := range []string{"abcdefgh2", "abcdefgh1", "a"} {
		m.Insert([]byte(key), mvcc.Timestamp(i+1), lsn.LSN(i+1), image(m, key, 1, ""))
	}
	m.Mutate([]byte("abcdefgh2"), 4, 4, deletion)
	for key, want := range map[string]bool{"": false, "a": false, "abcdefgh": false, "abcdefgh1": false,
		"abcdefgh2": false, "abcdefgh2\x00": true,
		"abcdefgh3": true, "b": true} {
		must.Equal(t, m.EndsBefore([]byte(key)), want, "EndsBefore", key)
	}
}
