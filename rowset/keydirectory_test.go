package rowset

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/keydir"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// eagerDirectories makes all rowsets have key directories, with at most that many groups, until the
// test ends.
func eagerDirectories(t testing.TB, groups int64) {
	keydir.Eager.Store(true)
	groupLimit = groups
	t.Cleanup(func() {
		keydir.Eager.Store(false)
		groupLimit = keydir.MaxGroups
	})
}

func (w *testRowSet) hasDirectory(set *DiskRowSet) bool {
	v, _ := set.opts.Cache.Get(set.directoryKey())
	return v != nil
}

// absentKey returns a key that no row has, near the key of a row.
func (w *testRowSet) absentKey(r *rand.Rand) []byte {
	for {
		key := bytes.Clone(w.rows[r.IntN(len(w.rows))].key)
		if n := r.IntN(len(key) + 1); n == len(key) || r.IntN(4) == 0 {
			key = append(key, byte(r.IntN(3)))
		} else {
			key[n] ^= 1 << r.IntN(8)
		}
		if w.indexOf(key) < 0 {
			return key
		}
	}
}

func (w *testRowSet) indexOf(key []byte) int {
	i, found := slices.BinarySearchFunc(w.rows, key, func(m modelRow, key []byte) int {
		return bytes.Compare(m.key, key)
	})
	if !found {
		return -1
	}
	return i
}

func TestKeyDirectoryFindsWhatTheKeyIndexFinds(t *testing.T) {
	for _, groups := range []int64{keydir.MaxGroups, 4} {
		eagerDirectories(t, groups)
		withTestRowSets(t, func(t *testing.T, r *rand.Rand, w *testRowSet) {
			set := w.cached(t, cache.New(16<<20))
			defer set.Unref()
			for i := range w.rows {
				p := bloom.MakeProbe(w.rows[i].key)
				if row, found, err := set.Find(p); err != nil || !found || int(row) != i {
					t.Fatalf("key %x: row %d, %t, %v, want %d", p.Key, row, found, err, i)
				}
				p = bloom.MakeProbe(w.absentKey(r))
				if row, found, err := set.Find(p); err != nil || found {
					t.Fatalf("key %x, which no row has: row %d, %t, %v", p.Key, row, found, err)
				}
			}
			w.checkGets(t, r, set)
			must.Equal(t, w.hasDirectory(set), true, "there is no directory")
		})
	}
}

// Two keys may have the same hash: a row that the directory returns is compared with the key.
func TestKeyDirectoryComparesKeys(t *testing.T) {
	r := seedtest.Rand(t)
	w := newTestRowSet(t, r,
		mustSchema([]schema.Column{{ID: 1, Name: "a", Type: schema.Int32},
			{ID: 2, Name: "b", Type: schema.Int64}}, 1), 300)
	for _, row := range []*Metadata{w.set.Metadata(), w.stored(t, r)} {
		set := must.Get(Open(w.schema, row, Options{Blocks: w.disk, Cache: cache.New(16 << 20)}))(t)
		same := keydir.New(300, 300) // of rows whose keys have one hash
		key := w.absentKey(r)
		p := bloom.MakeProbe(key)
		for at := range int64(len(w.rows)) {
			must.Equal(t, same.Add(p.Hash(), at), true, "row", at, "does not fit")
		}
		set.opts.Cache.Put(set.directoryKey(), same, same.Size())
		set.directory.kept.Store(true)
		if row, found, err := set.Find(p); found || err != nil {
			t.Errorf("an absent key is found in row %d, %v", row, err)
		}
		if _, found, err := set.Get(p, mvcc.Everything, []int{0, 1}, nil); found || err != nil {
			t.Errorf("an absent key is read: %v", err)
		}
		set.Unref()
	}
}

// A rowset counts lookups until a directory pays, and again after the directory was evicted.
func TestKeyDirectoryIsMadeWhenItPays(t *testing.T) {
	r := seedtest.Rand(t)
	w := newTestRowSet(t, r, mustSchema([]schema.Column{{ID: 1, Name: "a", Type: schema.Int64}}, 1), 400)
	c := cache.New(16 << 20)
	set := w.cached(t, c)
	defer set.Unref()
	for _, limit := range []int64{16 << 20, 16 << 20, 1000} {
		c.SetLimit(0)
		c.SetLimit(limit)
		n := 0
		for ; !w.hasDirectory(set) && n < 1000; n++ {
			if _, found, err := set.Find(bloom.MakeProbe(w.absentKey(r))); found || err != nil {
				t.Fatal(found, err)
			}
		}
		want := len(w.rows) / lookupRows
		if limit < 1<<20 {
			want = 1000 // there is no room for it
		}
		must.Equal(t, n, want,
			"lookups before there is a directory of", len(w.rows), "rows in a cache of", limit, "bytes")
	}
}

// Lookups that find their keys need neither the bloom file nor a key directory.
func TestLookupsThatFindTheirKeysGoToTheKeyIndex(t *testing.T) {
	r := seedtest.Rand(t)
	w := newTestRowSet(t, r,
		mustSchema([]schema.Column{{ID: 1, Name: "a", Type: schema.Int64},
			{ID: 2, Name: "b", Type: schema.Int32}}, 2), 400)
	set := w.cached(t, cache.New(16<<20))
	defer set.Unref()
	set.directory.damaged.Store(true) // in case it has a block, which would be read soon
	for i := range 2 * len(w.rows) {
		i %= len(w.rows)
		if at, found, err := set.Find(bloom.MakeProbe(w.rows[i].key)); err != nil || !found || int(at) != i {
			t.Fatal(at, found, err)
		}
	}
	if !set.usuallyFinds() || w.hasDirectory(set) {
		t.Errorf("%d of %d lookups found their keys, directory %t", set.found.Load(), 2*len(w.rows),
			w.hasDirectory(set))
	}
}

// The first absent key brings the bloom file and the key directory back, whoever looks for it.
func TestLookupsAreFilteredAfterAnAbsentKey(t *testing.T) {
	r := seedtest.Rand(t)
	w := newTestRowSet(t, r,
		mustSchema([]schema.Column{{ID: 1, Name: "a", Type: schema.Int64},
			{ID: 2, Name: "b", Type: schema.Int32}}, 1), 400)
	for _, stored := range []bool{false, true} {
		row := w.set.Metadata()
		if stored {
			row = w.stored(t, r)
		}
		set := must.Get(Open(w.schema, row, Options{Blocks: w.disk, Cache: cache.New(16 << 20)}))(t)
		p := bloom.MakeProbe(w.absentKey(r))
		for _, look := range []func() (bool, error){
			func() (bool, error) { _, found, err := set.Find(p); return found, err },
			func() (bool, error) { _, found, err := set.Get(p, mvcc.Everything, []int{1}, nil); return found, err },
		} {
			set.found.Store(trustFound)
			if found, err := look(); err != nil || found || set.usuallyFinds() {
				t.Errorf("an absent key: found %t, %v, usually %t", found, err, set.usuallyFinds())
			}
		}
		set.Unref()
	}
}

func TestLookupsOfAbsentKeysDoNotAllocate(t *testing.T) {
	eagerDirectories(t, keydir.MaxGroups)
	r := seedtest.Rand(t)
	w := newTestRowSet(t, r,
		mustSchema([]schema.Column{{ID: 1, Name: "a", Type: schema.Int64},
			{ID: 2, Name: "b", Type: schema.Int32}}, 2), 100)
	set := w.cached(t, cache.New(16<<20))
	defer set.Unref()
	cols := allOf(w.schema)
	p := bloom.MakeProbe(w.absentKey(r))
	for range 2 {
		n := testing.AllocsPerRun(10, func() {
			_, found, err := set.Find(p)
			_, got, err2 := set.Get(p, mvcc.Everything, cols, nil)
			if found || got || err != nil || err2 != nil {
				t.Error(found, got, err, err2)
			}
		})
		must.Equal(t, n, 0, "allocations")
		p = bloom.MakeProbe(w.absentKey(r))
	}
}

// A directory in a block: every flipped bit is reported, once, and all keys are found all the same.
func TestDamagedKeyDirectoryIsBuiltAgain(t *testing.T) {
	r := seedtest.Rand(t)
	w := newTestRowSet(t, r,
		mustSchema([]schema.Column{{ID: 1, Name: "a", Type: schema.Int32},
			{ID: 2, Name: "b", Type: schema.String}}, 2), 30)
	row := w.stored(t, r)
	file := w.disk.blocks[row.KeyDirectory]
	must.Equal(t, row.KeyDirectoryBytes, file.Size(), "bytes in the metadata")
	must.Equal(t, file.Size(), keydir.Size(row.Rows), "bytes")
	for range 100 {
		at, mask, noted := r.IntN(len(file.Bytes)), byte(1)<<r.IntN(8), 0
		file.Bytes[at] ^= mask
		set := must.Get(Open(w.schema, row,
			Options{Blocks: w.disk, Cache: cache.New(16 << 20), Damaged: func(id uint64, b block.ID, err error) {
				if noted++; id != row.ID || b != row.KeyDirectory ||
					!errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, fault.ErrUnsupported) {
					t.Errorf("rowset %d, block %d: %v", id, b, err)
				}
			}}))(t)
		for i := range w.rows {
			if got, found, err := set.Find(bloom.MakeProbe(w.rows[i].key)); err != nil || !found || int(got) != i {
				t.Fatalf("byte %d: row %d, %t, %v, want %d", at, got, found, err, i)
			}
			if _, found, err := set.Find(bloom.MakeProbe(w.absentKey(r))); err != nil || found {
				t.Fatalf("byte %d: an absent key: %t, %v", at, found, err)
			}
		}
		if err := set.CheckKeyDirectory(); !isDamage(err) {
			t.Errorf("byte %d: %v", at, err)
		}
		if noted != 1 || !set.KeyDirectoryDamaged() || !w.hasDirectory(set) {
			t.Errorf("byte %d: reported %d times, damaged %t, a directory: %t", at, noted,
				set.KeyDirectoryDamaged(), w.hasDirectory(set))
		}
		set.Unref()
		file.Bytes[at] ^= mask
	}
}

// A directory with a valid checksum and other rows is found by the check.
func TestCheckKeyDirectoryFindsMissingRows(t *testing.T) {
	r := seedtest.Rand(t)
	w := newTestRowSet(t, r,
		mustSchema([]schema.Column{{ID: 1, Name: "a", Type: schema.Int32},
			{ID: 2, Name: "b", Type: schema.String}}, 1), 50)
	row := w.stored(t, r)
	set := must.Get(Open(w.schema, row, Options{Blocks: w.disk}))(t)
	defer set.Unref()
	must.Do(t, set.CheckKeyDirectory())
	other := keydir.New(row.Rows, keydir.MaxGroups)
	for i := range w.rows {
		other.Add(bloom.MakeProbe(w.rows[i].key).Hash(), int64(i^1)%row.Rows)
	}
	file := w.disk.blocks[row.KeyDirectory]
	file.Bytes = nil
	must.Do(t, other.Write(file, row.Bloom))
	if err := set.CheckKeyDirectory(); !isDamage(err) {
		t.Error(err)
	}
}

// A rowset with a row file reads its directory with one read, and no other file for an absent key.
func TestStoredKeyDirectoryAnswersAlone(t *testing.T) {
	withTestRowSets(t, func(t *testing.T, r *rand.Rand, w *testRowSet) {
		row := w.stored(t, r)
		set := must.Get(Open(w.schema, row, Options{Blocks: w.disk, Cache: cache.New(16 << 20)}))(t)
		defer set.Unref()
		eagerDirectories(t, keydir.MaxGroups)
		directory := w.disk.blocks[row.KeyDirectory]
		w.disk.blocks = map[block.ID]*block.Memory{row.KeyDirectory: directory}
		for misses := 0; misses < 20; {
			p := bloom.MakeProbe(w.absentKey(r))
			if !set.keyDirectory().Excludes(p.Hash()) {
				continue // the key is compared, or in the next bucket
			}
			misses++
			_, found, err := set.Find(p)
			_, got, err2 := set.Get(p, mvcc.Everything, allOf(w.schema), nil)
			if found || got || err != nil || err2 != nil {
				t.Fatal(found, got, err, err2)
			}
		}
	})
}

// After OpenFiles and OpenDropped, the blocks may be dropped: readers and checks continue.
func TestOpenedFilesOutliveTheirBlocks(t *testing.T) {
	r := seedtest.Rand(t)
	w := newTestRowSet(t, r,
		mustSchema([]schema.Column{{ID: 1, Name: "a", Type: schema.Int32},
			{ID: 2, Name: "b", Type: schema.String}}, 1), 50)
	set := must.Get(Open(w.schema, w.stored(t, r), Options{Blocks: w.disk}))(t)
	defer set.Unref()
	next := *set.Metadata()
	next.RowFile, next.KeyDirectory = 0, 0
	set.OpenDropped(&next)
	delete(w.disk.blocks, set.Metadata().KeyDirectory)
	delete(w.disk.blocks, set.Metadata().RowFile)
	must.Do(t, errors.Join(set.CheckKeyDirectory(), set.CheckRowFile()))
	set.OpenFiles()
	clear(w.disk.blocks)
	if id, err := set.CheckFiles(); err != nil {
		t.Errorf("block %d: %v", id, err)
	}
}
