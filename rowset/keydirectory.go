package rowset

import (
	"bytes"
	"sync"
	"sync/atomic"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/keydir"
)

// A key directory answers lookups of keys instead of the bloom file and the key index: an absent
// key costs one cache line, a present one the comparison of one row's key. It is in the cache like
// a cblock, and may be evicted. A rowset without one counts its lookups and makes it once they have
// cost as much as making it will, so that it is never more than twice as expensive as the better
// of the two: a rowset that few lookups reach gets none.

// lookupRows is the number of rows whose keys are read and hashed in the time that a lookup without
// a directory takes longer than one with it: 150 to 400 ns, at 20 to 50 ns a row.
const lookupRows = 8

// directoryPart is the part number of key directories in the cache. The block of the key is that of
// the key index or the key column, which a rowset keeps for life.
const directoryPart = 1<<32 - 3

// maxTries is the number of candidates of a directory that are tried before the key index is asked.
// Chance leads to a second one for 1 in 400 keys; only keys chosen for that have more.
const maxTries = 4

// groupLimit is lowered in tests.
var groupLimit int64 = keydir.MaxGroups

// directory is the state of a rowset's key directory.
type directory struct {
	kept    atomic.Bool  // it was put into the cache, and no lookup missed it since
	off     atomic.Bool  // it cannot be made
	lookups atomic.Int64 // without one
	making  sync.Mutex
}

// candidates are the rows that may have a key, according to a directory.
type candidates struct {
	dir    *keydir.Directory // nil: there is none
	search keydir.Search
	group  int64 // the current one
}

// newCandidates searches a directory, which may be nil; ok is false if it excludes the key.
func newCandidates(dir *keydir.Directory, p bloom.Probe) (c candidates, ok bool) {
	if dir == nil {
		return candidates{}, true
	}
	c = candidates{dir: dir, search: dir.Search(p.Hash())}
	return c, c.next()
}

// exact reports whether groups are rows.
func (c *candidates) exact() bool { return c.dir.Shift() == 0 }

// row returns the current candidate, if groups are rows.
func (c *candidates) row() batch.Ordinal { return batch.Ordinal(c.group) }

// next makes the next candidate the current one.
func (c *candidates) next() (ok bool) {
	c.group, ok = c.search.Next()
	return ok
}

// directoryKey returns the cache key of the key directory.
func (d *DiskRowSet) directoryKey() cache.Key {
	return cache.Key{Block: uint64(d.keyBlock()), Part: directoryPart}
}

// keyDirectory returns the key directory, nil if there is none in memory and it is not worth to
// make it.
func (d *DiskRowSet) keyDirectory() *keydir.Directory {
	if d.opts.Cache == nil {
		return nil
	}
	k := &d.directory
	if k.kept.Load() {
		if v, ok := d.opts.Cache.Get(d.directoryKey()); ok {
			return v.(*keydir.Directory)
		}
		k.lookups.Store(0) // it was evicted, and must pay again
		k.kept.Store(false)
	}
	if n := k.lookups.Add(1); n < d.Metadata().Rows/lookupRows && !keydir.Eager.Load() || k.off.Load() || !k.making.TryLock() {
		return nil
	}
	defer k.making.Unlock()
	return d.keepDirectory()
}

// keepDirectory makes the key directory and puts it into the cache. It returns nil if that is not
// possible: the caller finds the reason, if it is damage, or does not need it.
func (d *DiskRowSet) keepDirectory() *keydir.Directory {
	c, k := d.opts.Cache, &d.directory
	k.lookups.Store(0)
	if v, ok := c.Get(d.directoryKey()); ok { // made by another rowset of the same rows
		k.kept.Store(true)
		return v.(*keydir.Directory)
	}
	if 8*keydir.Size(d.Metadata().Rows) > c.Limit() {
		return nil
	}
	dir, err := d.buildDirectory()
	if err != nil || dir == nil {
		k.off.Store(err == nil || isDamage(err))
		return nil
	}
	c.Put(d.directoryKey(), dir, dir.Size())
	k.kept.Store(true)
	return dir
}

// buildDirectory makes the key directory from the key columns; nil if the keys are such that it is
// of no use.
func (d *DiskRowSet) buildDirectory() (*keydir.Directory, error) {
	cols := make([]int, d.Schema.Keys)
	for i := range cols {
		cols[i] = i
	}
	base, err := d.NewBaseReader(cols)
	if err != nil {
		return nil, err
	}
	dir := keydir.New(d.Metadata().Rows, groupLimit)
	var keys [][]byte
	for {
		vectors, from, n, err := base.Next()
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return dir, nil
		}
		keys = change.AppendVectorKeys(keys[:0], d.encoder, vectors, 0, n)
		for i, key := range keys {
			if !dir.Add(bloom.MakeProbe(key).Hash(), int64(from)+int64(i)) {
				return nil, nil
			}
		}
	}
}

// findCandidate returns the row among the candidates that has a key.
func (d *DiskRowSet) findCandidate(c candidates, key []byte) (row batch.Ordinal, found bool, err error) {
	for range maxTries {
		if !c.exact() {
			break
		}
		same, known, err := d.hasKey(c.row(), key)
		switch {
		case err != nil:
			return 0, false, err
		case same:
			return c.row(), true, nil
		case !known:
			return d.seekExact(key)
		case !c.next():
			return 0, false, nil
		}
	}
	return d.seekExact(key)
}

// seekExact returns the row with a key by the key index.
func (d *DiskRowSet) seekExact(key []byte) (row batch.Ordinal, found bool, err error) {
	if row, found, err = d.seek(key); !found {
		row = 0
	}
	return row, found, err
}

// hasKey compares a row's key. known is false if the key's cells are not in memory: then the key
// index is read with less effort.
func (d *DiskRowSet) hasKey(row batch.Ordinal, key []byte) (same, known bool, err error) {
	var few [64]byte
	at := few[:0]
	for col := range d.Schema.Keys {
		cell, ok, err := d.cachedCell(row, col)
		if err != nil || !ok {
			return false, false, err
		}
		at = d.encoder.AppendCell(at, col, cell)
	}
	return bytes.Equal(at, key), true, nil
}
